"""The files of an ONNX model: one of its own, or an archive with those its tensors name."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from onnx import ModelProto, TensorProto, helper

from service.contracts.errors import NnfarmError
from service.contracts.models_archive import HEAD_BYTES, bad_archive, check_entries, is_onnx_archive
from service.contracts.models_onnx import external_tensors, location_of, span_of

_SMALL_BYTES = 64 * 1024
"""Shapes, axes and the like: what checks may want to read."""


@dataclass(frozen=True)
class ModelFiles:
    """What was uploaded.

    Attributes:
        path: the upload.
        model: the model's entry, None where the upload is the model itself.
        archive: the open archive, None likewise.
        sizes: bytes of the entries beside the model, by name.
    """

    path: Path
    model: str | None = None
    archive: zipfile.ZipFile | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    def open_model(self) -> IO[bytes]:
        """The .onnx file."""
        if self.archive is None or self.model is None:
            return self.path.open("rb")
        return self.archive.open(self.model)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """A part of an entry."""
        if self.archive is None:
            raise ValueError("the upload is no archive")
        with self.archive.open(name) as file:
            file.seek(offset)
            return file.read(length)


@contextlib.contextmanager
def open_files(path: Path) -> Iterator[ModelFiles]:
    """Open an upload, its archive checked.

    Raises:
        NnfarmError: ``model.bad_archive``.
    """
    with path.open("rb") as file:
        is_archive = is_onnx_archive(file.read(HEAD_BYTES))
    if not is_archive:
        yield ModelFiles(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            model = check_entries(entries, path.stat().st_size)
            sizes = {entry.filename: entry.file_size for entry in entries}
            del sizes[model]
            yield ModelFiles(path, model, archive, sizes)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise bad_archive(f"it is damaged: {error}") from error


def attach_external_data(model: ModelProto, files: ModelFiles) -> None:
    """Check where external data is, and put it into the model as far as checks may read it.

    Small tensors get their data; large ones stay external, with their shapes.

    Raises:
        NnfarmError: ``model.external_data_escapes``, ``model.external_data_missing``,
            ``model.bad_archive`` for files that no tensor names.
    """
    used: set[str] = set()
    for tensor in external_tensors(model):
        location = location_of(tensor)
        if location not in files.sizes:
            raise _missing(tensor, location, is_archive=files.archive is not None)
        used.add(location)
        _attach(tensor, location, files)
    if unused := sorted(set(files.sizes) - used):
        raise bad_archive(f"no tensor of the model names {unused[0]!r}", unused[0])


def _attach(tensor: TensorProto, location: str, files: ModelFiles) -> None:
    offset, length = span_of(tensor, files.sizes[location])
    wanted = _size_bytes(tensor)
    if wanted is None or wanted != length:
        raise NnfarmError(
            "model.external_data_missing",
            f"Tensor {tensor.name!r} needs {wanted or 'an unknown number of'} bytes; {location!r} "
            f"has {length} for it.",
            tensor=tensor.name,
            location=location,
        )
    if length <= _SMALL_BYTES:
        _fill(tensor, files.read(location, offset, length))


def empty_external_tensors(model: ModelProto) -> None:
    """Make what is still external empty: ONNX's checker wants the files, or all the bytes."""
    for tensor in external_tensors(model):
        del tensor.dims[:]
        tensor.dims.append(0)
        _fill(tensor, b"")


def _fill(tensor: TensorProto, content: bytes) -> None:
    del tensor.external_data[:]
    tensor.data_location = TensorProto.DEFAULT
    tensor.raw_data = content


def _size_bytes(tensor: TensorProto) -> int | None:
    """Bytes of a tensor's data; None for types that have no raw form."""
    try:
        width = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, ValueError, TypeError):
        return None
    if tensor.data_type == TensorProto.STRING:
        return None
    count = 1
    for dim in tensor.dims:
        count *= dim
    if tensor.data_type in _HALF_BYTES:
        return (count + 1) // 2
    return count * width


_HALF_BYTES = {TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1}


def _missing(tensor: TensorProto, location: str, *, is_archive: bool) -> NnfarmError:
    advice = (
        f"{location!r}, which is not in the archive"
        if is_archive
        else f"another file, {location!r}: upload a zip of both, as the nnfarm command does"
    )
    return NnfarmError(
        "model.external_data_missing",
        f"Tensor {tensor.name!r} has its data in {advice}.",
        tensor=tensor.name,
        location=location,
    )
