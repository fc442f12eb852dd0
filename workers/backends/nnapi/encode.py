"""The encoded form of a model: docs/reference/encoded-model.md."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from workers.backends.nnapi.model import Model, Operand

INLINE_LIMIT_BYTES = 128
"""NNAPI itself copies constants up to this size (setOperandValue); larger ones go to the file."""

ALIGNMENT_BYTES = 64

WEIGHTS_FILE = "weights.bin"


class WeightsPool:
    """Constants of all subgraphs of an artifact, each byte string stored once."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._offsets: dict[bytes, int] = {}

    def add(self, value: bytes) -> int:
        """Offset of a constant in the file, a multiple of 64."""
        key = hashlib.sha256(value).digest()
        if key not in self._offsets:
            self._data.extend(bytes(-len(self._data) % ALIGNMENT_BYTES))
            self._offsets[key] = len(self._data)
            self._data.extend(value)
        return self._offsets[key]

    def to_bytes(self) -> bytes:
        """The file."""
        return bytes(self._data)


def operand_entries(model: Model, pool: WeightsPool) -> list[dict[str, Any]]:
    """JSON of the operands; large constants move into the pool."""
    return [_operand_entry(operand, pool) for operand in model.operands]


def _operand_entry(operand: Operand, pool: WeightsPool) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": int(operand.type), "dims": list(operand.dims)}
    if operand.channel_dim is not None:
        entry["channel_dim"] = operand.channel_dim
        entry["channel_scales"] = list(operand.channel_scales)
    elif operand.scale:
        entry["scale"] = operand.scale
        entry["zero_point"] = operand.zero_point
    if operand.is_omitted:
        entry["omitted"] = True
    if operand.value is None:
        return entry
    if len(operand.value) <= INLINE_LIMIT_BYTES:
        entry["data"] = base64.b64encode(operand.value).decode("ascii")
    else:
        entry["offset"] = pool.add(operand.value)
        entry["size"] = len(operand.value)
    return entry


def encode(symbol: str, model: Model, operands: list[dict[str, Any]], weights: bytes) -> bytes:
    """Bytes of the runtime module of one subgraph.

    Args:
        symbol: name of the packed function.
        model: the lowered model.
        operands: its `operand_entries`.
        weights: the artifact's whole weights file.
    """
    document: dict[str, Any] = {
        "format": "nnfarm.nnapi",
        "version": 1,
        "symbol": symbol,
        "level": model.level,
        "relaxed": model.relaxed,
        "operands": operands,
        "operations": [
            {
                "code": op.code,
                "name": op.name,
                "inputs": list(op.inputs),
                "outputs": list(op.outputs),
            }
            for op in model.operations
        ],
        "inputs": list(model.inputs),
        "outputs": list(model.outputs),
    }
    if any("offset" in entry for entry in operands):
        document["weights"] = {
            "file": WEIGHTS_FILE,
            "size": len(weights),
            "sha256": hashlib.sha256(weights).hexdigest(),
        }
    return json.dumps(document, separators=(",", ":")).encode()
