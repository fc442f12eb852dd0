"""Which format a model file has, told by its first bytes: names and endings are hearsay."""

from __future__ import annotations

from pathlib import Path

from service.contracts.jobs import ModelFormat

_TFLITE_IDENTIFIER = b"TFL3"
_ZIP_MAGIC = b"PK\x03\x04"


def format_of(path: Path) -> ModelFormat:
    """The format; what is none of the others is taken for ONNX, which has no mark of its own."""
    with path.open("rb") as file:
        head = file.read(8)
    if head[4:8] == _TFLITE_IDENTIFIER:
        return ModelFormat.TFLITE
    if head[:4] == _ZIP_MAGIC:
        return ModelFormat.PYTORCH
    return ModelFormat.ONNX
