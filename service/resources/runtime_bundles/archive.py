"""Checks of an uploaded bundle: farms will put these files on phones."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from zlib import error as zlib_error

from pydantic import ValidationError

from service.contracts.errors import NnfarmError
from service.contracts.runtime_bundles import DESCRIPTION_NAME, RuntimeBundleDescription

_CHUNK_BYTES = 1 << 20
_MAX_DESCRIPTION_BYTES = 64 * 1024


def read_description(path: Path) -> RuntimeBundleDescription:
    """The description of a bundle's zip, after comparing every member with it.

    Raises:
        NnfarmError: ``request.invalid`` naming what does not fit.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _checked(archive)
    # A damaged zip raises any of these, whatever the documentation says.
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib_error) as error:
        raise _invalid(f"it is no zip, or damaged: {error}") from error


def _checked(archive: zipfile.ZipFile) -> RuntimeBundleDescription:
    members = archive.infolist()
    names = [member.filename for member in members]
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise _invalid("members must be stored, not compressed")
    if DESCRIPTION_NAME not in names:
        raise _invalid(f"it has no {DESCRIPTION_NAME}")
    if archive.getinfo(DESCRIPTION_NAME).file_size > _MAX_DESCRIPTION_BYTES:
        raise _invalid(f"{DESCRIPTION_NAME} is too long")
    try:
        description = RuntimeBundleDescription.model_validate_json(archive.read(DESCRIPTION_NAME))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise _invalid(f"{DESCRIPTION_NAME}: {where}: {first['msg']}") from error
    if sorted(names) != sorted([DESCRIPTION_NAME, *description.sha256]):
        raise _invalid(f"its members are not those that {DESCRIPTION_NAME} names")
    for name, sha256 in description.sha256.items():
        if _hash(archive, name) != sha256:
            raise _invalid(f"{name} is not the file that {DESCRIPTION_NAME} describes")
    return description


def _hash(archive: zipfile.ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    with archive.open(name) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _invalid(detail: str) -> NnfarmError:
    return NnfarmError("request.invalid", f"The runtime bundle cannot be taken: {detail}.")
