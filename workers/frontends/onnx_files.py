"""Where the .onnx file of a job is: the upload itself, or what its archive unpacks to."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from service.contracts.models_archive import HEAD_BYTES, bad_archive, check_entries, is_onnx_archive

_CHUNK_BYTES = 1 << 20


def onnx_path(upload: Path) -> Path:
    """The path of the model's .onnx file, with the files its tensors name beside it.

    An archive is unpacked into a folder beside the upload, once a job; every reader of the model
    (importer, quantizer, ONNX Runtime) then opens the same files.

    Raises:
        NnfarmError: ``model.bad_archive``.
    """
    with upload.open("rb") as file:
        if not is_onnx_archive(file.read(HEAD_BYTES)):
            return upload
    folder = upload.with_name(f"{upload.name}.files")
    try:
        with zipfile.ZipFile(upload) as archive:
            entries = archive.infolist()
            model = check_entries(entries, upload.stat().st_size)
            if not folder.exists():
                _unpack(archive, entries, folder)
    except zipfile.BadZipFile as error:
        raise bad_archive(f"it is damaged: {error}") from error
    return folder / model


def _unpack(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], folder: Path) -> None:
    unfinished = folder.with_name(f"{folder.name}.part")
    unfinished.mkdir()
    for entry in entries:
        target = unfinished / entry.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x": the names were checked, and nothing that exists is written over.
        with archive.open(entry) as source, target.open("xb") as file:
            shutil.copyfileobj(source, file, _CHUNK_BYTES)
    unfinished.rename(folder)
