"""Runtime bundles that come from the service instead of a folder built beside the agent."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from pathlib import Path

from pydantic import ValidationError

from device_farm.client import AgentClient, OfferedBundle
from service.contracts.errors import NnfarmError
from service.contracts.runtime_bundles import DESCRIPTION_NAME, RuntimeBundleDescription

_DIGESTS = ".digests"


def fetch_bundles(client: AgentClient, folder: Path) -> tuple[str, ...]:
    """Has the newest bundle of every target in ``folder/<target>``.

    Args:
        client: asks the service.
        folder: the agent's own; made when missing.

    Returns:
        Targets whose bundle is new here.

    Raises:
        NnfarmError: the service does not answer, or what came is not what it offered.
    """
    (folder / _DIGESTS).mkdir(parents=True, exist_ok=True)
    fetched = []
    for bundle in client.runtime_bundles():
        # Beside the bundle: every file inside goes to the phones.
        digest = folder / _DIGESTS / bundle.target
        if digest.exists() and digest.read_text() == bundle.sha256:
            continue
        digest.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
            _replace(_unpack(client, bundle, Path(name)), folder / bundle.target)
        digest.write_text(bundle.sha256)
        fetched.append(bundle.target)
    return tuple(fetched)


def _unpack(client: AgentClient, bundle: OfferedBundle, folder: Path) -> Path:
    archive, unpacked = folder / "bundle.zip", folder / "bundle"
    digest = hashlib.sha256()
    with archive.open("wb") as sink:
        for chunk in client.download_bundle(bundle.target):
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != bundle.sha256:
        raise NnfarmError(
            "infra.storage", f"The runtime bundle for {bundle.target} came with other bytes."
        )
    unpacked.mkdir()
    try:
        with zipfile.ZipFile(archive) as members:
            _extract(members, bundle, unpacked)
    except (zipfile.BadZipFile, ValidationError, KeyError) as error:
        raise NnfarmError(
            "infra.storage", f"The runtime bundle for {bundle.target} is none: {error}"
        ) from error
    return unpacked


def _extract(members: zipfile.ZipFile, bundle: OfferedBundle, folder: Path) -> None:
    """Writes the files that the description names, whose names it has checked, and no other."""
    description = RuntimeBundleDescription.model_validate_json(members.read(DESCRIPTION_NAME))
    if description.target != bundle.target:
        raise NnfarmError("infra.storage", f"The bundle for {bundle.target} is another's.")
    for name in (DESCRIPTION_NAME, *description.sha256):
        file = folder / name
        file.write_bytes(members.read(name))
        file.chmod(0o755)


def _replace(new: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    new.rename(folder)
