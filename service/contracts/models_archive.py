"""The archive of an ONNX model whose tensors live in files beside it.

A zip whose entries are stored, not deflated: first the model, named ``*.onnx`` and in no folder,
then the files that its tensors name, and nothing else. Service and workers hold it to these rules;
the archive is untrusted at both.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Sequence
from pathlib import PurePosixPath

from service.contracts.errors import NnfarmError
from service.contracts.models_onnx import is_inside

MODEL_NAME = "model.onnx"
"""The model's name in an archive the client makes, whatever its file is called."""

HEAD_BYTES = 30 + 255
"""As much of a file as `is_onnx_archive` looks at."""

_MAX_ENTRIES = 10_000
_MAX_PART_BYTES = 200  # file systems take 255
_LOCAL_HEADER = b"PK\x03\x04"
_ENCRYPTED = 0x1


def is_onnx_archive(head: bytes) -> bool:
    """Whether a file that begins like this is a zip with an ONNX model as its first entry."""
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return head[:4] == _LOCAL_HEADER and name.endswith(b".onnx") and b"/" not in name


def check_entries(entries: Sequence[zipfile.ZipInfo], size_bytes: int) -> str:
    """Refuse an archive that could write elsewhere, or more than its own size.

    Args:
        entries: its directory.
        size_bytes: of the whole file.

    Returns:
        The model's name.

    Raises:
        NnfarmError: ``model.bad_archive``.
    """
    if not 0 < len(entries) <= _MAX_ENTRIES:
        raise bad_archive(f"it has {len(entries)} entries; 1 to {_MAX_ENTRIES} are possible")
    names: set[str] = set()
    for entry in entries:
        _check_entry(entry)
        if entry.filename in names:
            raise bad_archive(f"it has {entry.filename!r} twice", entry.filename)
        names.add(entry.filename)
    for name in sorted(names):
        folders = {str(folder) for folder in PurePosixPath(name).parents}
        if both := folders & names:
            raise bad_archive(f"{min(both)!r} is a file and the folder of {name!r}", name)
    if sum(entry.file_size for entry in entries) > size_bytes:
        raise bad_archive("its entries overlap: together they are larger than the file")
    first = min(entries, key=lambda entry: entry.header_offset).filename
    if not first.endswith(".onnx") or "/" in first:
        raise bad_archive(f"its first entry is {first!r}, not the model", first)
    return first


def bad_archive(reason: str, entry: str | None = None) -> NnfarmError:
    """The error for an archive that breaks a rule."""
    details = {} if entry is None else {"entry": entry}
    return NnfarmError(
        "model.bad_archive", f"The archive of the model is not taken: {reason}.", **details
    )


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    plain = (
        is_inside(name)
        and name == str(PurePosixPath(name))
        and all(len(part.encode(errors="replace")) <= _MAX_PART_BYTES for part in name.split("/"))
    )
    if not plain or entry.orig_filename != name:
        raise bad_archive(f"{name!r} is no plain relative name", name)
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise bad_archive(f"{name!r} is a link or a special file", name)
    if entry.flag_bits & _ENCRYPTED:
        raise bad_archive(f"{name!r} is encrypted", name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise bad_archive(f"{name!r} is compressed; store it as it is (zip -0)", name)
