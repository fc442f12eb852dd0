"""The client's calls on runtime bundles."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from pydantic import ValidationError

from service.client.connection import Connection, parse
from service.client.messages import RuntimeBundle
from service.client.transfer import OnBytes, ignore_bytes, write_checked
from service.contracts.errors import NnfarmError
from service.contracts.runtime_bundles import DESCRIPTION_NAME, RuntimeBundleDescription

_PATH = "/v1/runtime-bundles"
_ZERO_TIME = (1980, 1, 1, 0, 0, 0)


class RuntimeBundles:
    """Speaks to one service; its calls raise `NnfarmError`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def newest(self) -> list[RuntimeBundle]:
        """The bundle that counts of each target, by target."""
        found: dict[str, RuntimeBundle] = {}
        params = {"limit": "200"}
        while True:
            page = self._connection.json("GET", _PATH, params=params)
            for bundle in (parse(RuntimeBundle, item) for item in page["items"]):
                found.setdefault(bundle.target, bundle)
            if not page.get("next_cursor"):
                return [found[target] for target in sorted(found)]
            params["cursor"] = page["next_cursor"]

    def get(self, target: str) -> RuntimeBundle:
        """The bundle of a target."""
        return parse(RuntimeBundle, self._connection.json("GET", f"{_PATH}/{target}"))

    def download(self, bundle: RuntimeBundle, path: Path, on_bytes: OnBytes = ignore_bytes) -> None:
        """Save a bundle's zip; `request.hash_mismatch` when a newer one has just come."""
        with self._connection.stream(f"{_PATH}/{bundle.target}/content") as response:
            length = int(response.headers["Content-Length"])
            write_checked(response.iter_bytes(), path, length, bundle.sha256, on_bytes)

    def upload(self, folder: Path, agent_token: str) -> RuntimeBundle:
        """Upload a built bundle; the same bytes give the same bundle again.

        Args:
            folder: as `device_farm.runtime.build` makes it.
            agent_token: the agents' token of the service.
        """
        content = bundle_zip(folder)
        headers = {
            "Authorization": f"Bearer {agent_token}",
            "Content-Type": "application/zip",
            "X-Content-SHA256": hashlib.sha256(content).hexdigest(),
        }
        answer = self._connection.json(
            "POST", f"/internal{_PATH}", content=content, headers=headers
        )
        return parse(RuntimeBundle, answer)


def bundle_zip(folder: Path) -> bytes:
    """The zip of a bundle's folder: always the same bytes for the same files.

    Raises:
        NnfarmError: `request.invalid` when it is no bundle, or a file is missing.
    """
    buffer = io.BytesIO()
    try:
        text = (folder / DESCRIPTION_NAME).read_text()
        description = RuntimeBundleDescription.model_validate_json(text)
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name in (DESCRIPTION_NAME, *sorted(description.sha256)):
                member = zipfile.ZipInfo(name, _ZERO_TIME)
                member.external_attr = 0o100755 << 16
                archive.writestr(member, (folder / name).read_bytes())
    except OSError as error:
        raise NnfarmError("request.invalid", f"{error.filename}: {error.strerror}") from error
    except (ValidationError, UnicodeDecodeError) as error:
        raise NnfarmError(
            "request.invalid", f"{folder / DESCRIPTION_NAME} describes no runtime bundle"
        ) from error
    return buffer.getvalue()
