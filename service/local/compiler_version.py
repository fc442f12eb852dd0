"""The version of a compiler that runs from a checkout."""

from __future__ import annotations

import hashlib
from pathlib import Path

from service.settings import installed_compiler_version

_REPOSITORY = Path(__file__).resolve().parents[2]
_SOURCES = ("workers", "service/contracts", "device_farm/runtime/player")


def compiler_version() -> str:
    """Installed versions and a hash of the sources that shape artifacts.

    In a checkout the sources change under a constant version number; without the hash an artifact
    of yesterday's compiler would be taken for today's.
    """
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_REPOSITORY / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(_REPOSITORY)).encode())
                digest.update(path.read_bytes())
    return f"{installed_compiler_version()} sources={digest.hexdigest()[:16]}"
