"""A reader of the encoded model written from docs/reference/encoded-model.md alone."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

_ELEMENT_BYTES = {0: 4, 1: 4, 2: 4, 3: 4, 4: 4, 5: 1, 6: 1, 7: 2, 8: 2, 9: 1, 10: 2, 11: 1}
_ELEMENT_BYTES |= {12: 2, 13: 1, 14: 1}
_PER_CHANNEL = 11
_ALIGNMENT_BYTES = 64
_INLINE_BYTES = 128


def read(document: str, weights: bytes) -> dict[str, Any]:
    """Operands with their values, operations and borders, of a document that keeps every rule.

    Raises:
        AssertionError: a rule of the reference page is broken.
    """
    model = json.loads(document)
    assert (model["format"], model["version"]) == ("nnfarm.nnapi", 1)
    operands = [_operand(entry, weights) for entry in model["operands"]]
    made = {index for operation in model["operations"] for index in operation["outputs"]}
    known = set(model["inputs"]) | {i for i, o in enumerate(operands) if o["value"] is not None}
    known |= {i for i, entry in enumerate(model["operands"]) if entry.get("omitted")}
    for operation in model["operations"]:
        assert known.issuperset(operation["inputs"]), f"{operation} reads what is not there yet"
        assert known.isdisjoint(operation["outputs"]), f"{operation} writes a value again"
        known.update(operation["outputs"])
    assert made.issuperset(model["outputs"])
    any_in_file = any("offset" in entry for entry in model["operands"])
    assert any_in_file == ("weights" in model)
    if any_in_file:
        assert model["weights"]["size"] == len(weights)
    operations = [
        (op["code"], op["name"], tuple(op["inputs"]), tuple(op["outputs"]))
        for op in model["operations"]
    ]
    borders = {name: tuple(model[name]) for name in ("inputs", "outputs")}
    head = {name: model[name] for name in ("symbol", "level", "relaxed")}
    return {**head, **borders, "operands": operands, "operations": operations}


def _operand(entry: dict[str, Any], weights: bytes) -> dict[str, Any]:
    value = None
    if "data" in entry:
        value = base64.b64decode(entry["data"], validate=True)
        assert len(value) <= _INLINE_BYTES
    elif "offset" in entry:
        assert entry["offset"] % _ALIGNMENT_BYTES == 0
        value = weights[entry["offset"] : entry["offset"] + entry["size"]]
        assert len(value) == entry["size"]
    if value is not None:
        assert len(value) == _ELEMENT_BYTES[entry["type"]] * math.prod(entry["dims"])
    scales = tuple(entry.get("channel_scales", ()))
    if entry["type"] == _PER_CHANNEL:
        assert len(scales) == entry["dims"][entry["channel_dim"]]
        assert all(np.float32(scale) > 0 for scale in scales)
    return {
        "type": entry["type"],
        "dims": tuple(entry["dims"]),
        "scale": entry.get("scale", 0.0),
        "zero_point": entry.get("zero_point", 0),
        "channel_dim": entry.get("channel_dim"),
        "channel_scales": scales,
        "value": value,
    }
