"""First documents for the fuzzers: real ones, out of the tests' golden files and the contracts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

_GOLDEN = Path(__file__).resolve().parents[3] / "tests/workers/backends/nnapi/golden"
# What the golden files do not have: run-time shapes, omitted operands, weights, extensions.
_MODEL: dict[str, object] = {
    "format": "nnfarm.nnapi",
    "version": 1,
    "symbol": "nnfarm_nnapi_0",
    "level": 3,
    "relaxed": True,
    "weights": {"file": "weights.bin", "size": 128, "sha256": "0" * 64},
    "operands": [
        {"type": 3, "dims": [0, 8]},
        {"type": 3, "dims": [4, 8], "offset": 0, "size": 128},
        {"type": 1, "dims": [], "data": "AAAAAA=="},
        {"type": 3, "dims": [0, 8]},
        {
            "type": 11,
            "dims": [2, 1],
            "channel_scales": [0.5, 0.25],
            "channel_dim": 0,
            "data": "AAA=",
        },
        {"type": 3, "dims": [0], "omitted": True},
    ],
    "operations": [{"code": 0, "name": "ADD", "inputs": [0, 1, 2], "outputs": [3]}],
    "inputs": [0],
    "outputs": [3],
}
_MANIFEST: dict[str, object] = {
    "format": "nnfarm.package",
    "format_version": 1,
    "entry": "main",
    "signature": {
        "inputs": [{"name": "x", "dtype": "float32", "shape": [-1, 8]}],
        "outputs": [{"name": "y", "dtype": "int8", "shape": [4, 8]}],
    },
    "subgraph_count": 1,
    "offloaded_count": 2,
    "operation_count": 3,
    "nnapi_settings": {"preference": "low-power"},
    "parts": [
        {"role": "library", "path": "model.so", "sha256": "0" * 64, "size_bytes": 1},
        {"role": "cpu_twin", "path": "model_cpu.so", "sha256": "0" * 64, "size_bytes": 2},
        {
            "role": "cpu_twin",
            "path": "model_cpu.dotprod.so",
            "sha256": "0" * 64,
            "size_bytes": 2,
            "cpu_variant": "dotprod",
            "cpu_features": ["asimddp"],
        },
    ],
}
_JSON = (
    '{"a": [1, -2.5e3, true, null, "\\u00e9\\n", {}]}',
    "[[[[]]]]",
    '"\\ud83d\\ude00"',
    "1e400",
)


def write_seeds(folder: Path) -> dict[str, Path]:
    """Writes one folder of documents for each fuzzer; returns them by the fuzzer's name.

    Raises:
        OSError: a golden file is missing.
    """
    lines = (_GOLDEN / "operations.json").read_text(encoding="utf-8")
    models = [json.dumps(model) for model in (*json.loads(lines).values(), _MODEL)]
    manifests = [json.dumps(_MANIFEST)]
    documents = {
        "encoded_model": models,
        "manifest": manifests,
        "json": [*_JSON, *manifests, *models[:10]],
    }
    return {name: _write(folder / name, texts) for name, texts in documents.items()}


def _write(folder: Path, texts: Iterable[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for index, text in enumerate(texts):
        (folder / f"seed-{index:03}").write_text(text, encoding="utf-8")
    return folder
