"""An ONNX model with external data, made one file to upload."""

from __future__ import annotations

import contextlib
import mmap
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from service.contracts.errors import NnfarmError
from service.contracts.models_archive import MODEL_NAME
from service.contracts.models_onnx import external_tensors, location_of

_LOCATION_KEY = b"location"  # of each external tensor, as text in the file
_OTHER_FORMATS = (b"PK\x03\x04", b"TFL3")
_FIRST_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def uploadable(path: Path) -> Iterator[Path]:
    """The file to upload for a model: itself, or an archive of it and its external data.

    The archive has only the files that tensors of the model name. The same contents give the same
    bytes, whatever the model's file is called. It is gone when the context ends.

    Raises:
        NnfarmError: ``model.external_data_missing``, ``model.external_data_escapes``; and
            ``request.invalid`` for a file that cannot be read.
    """
    try:
        names = _external_files(path)
        if not names:
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="nnfarm-") as folder:
            archive = Path(folder) / f"{path.stem}.zip"
            _pack(path, names, archive)
            yield archive
    except OSError as error:
        raise NnfarmError(
            "request.invalid", f"{error.filename or path}: {error.strerror}"
        ) from error


def _external_files(path: Path) -> list[str]:
    """Names of the files a model's tensors are in; none where it is no ONNX model."""
    with path.open("rb") as file:
        head = file.read(8)
        if len(head) < 8 or head[:4] in _OTHER_FORMATS or head[4:] in _OTHER_FORMATS:
            return []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(_LOCATION_KEY) < 0:
                return []  # spares most uploads the parser, which takes half a second to import
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError:
        return []  # the service says what is wrong with the file
    locations: dict[str, str] = {}
    for tensor in external_tensors(model):
        locations.setdefault(location_of(tensor), tensor.name)
    for location, name in locations.items():
        if not (path.parent / location).is_file():
            raise NnfarmError(
                "model.external_data_missing",
                f"Tensor {name!r} has its data in {location!r}, which is not beside {path}.",
                tensor=name,
                location=location,
            )
    return sorted(locations)


def _pack(path: Path, names: list[str], archive: Path) -> None:
    # Not in a folder, and first: that tells the service what the archive is.
    with zipfile.ZipFile(archive, "w") as target:
        for name, source in [(MODEL_NAME, path), *((n, path.parent / n) for n in names)]:
            entry = zipfile.ZipInfo(name, _FIRST_ZIP_TIME)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            entry.file_size = source.stat().st_size  # decides whether the entry is a zip64 one
            with source.open("rb") as data, target.open(entry, "w") as out:
                shutil.copyfileobj(data, out, _CHUNK_BYTES)
