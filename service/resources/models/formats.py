"""Which format a model file has, told by its first bytes: names and endings are hearsay."""

from __future__ import annotations

from pathlib import Path

from service.contracts.jobs import ModelFormat
from service.contracts.models_archive import HEAD_BYTES, is_onnx_archive

_TFLITE_IDENTIFIER = b"TFL3"
_ZIP_MAGIC = b"PK\x03\x04"


def format_of(path: Path) -> ModelFormat:
    """The format; what is none of the others is taken for ONNX, which has no mark of its own.

    A zip is an ONNX model with its external data, or a PyTorch program.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head[4:8] == _TFLITE_IDENTIFIER:
        return ModelFormat.TFLITE
    if head[:4] == _ZIP_MAGIC and not is_onnx_archive(head):
        return ModelFormat.PYTORCH
    return ModelFormat.ONNX
