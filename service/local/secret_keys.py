"""Secrets of a one-machine stack: drawn once, kept in a file only the owner reads."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from service.contracts.errors import NnfarmError


def _draw() -> str:
    return secrets.token_urlsafe(32)


class SecretKeys(BaseModel):
    """What the parts prove themselves with to each other."""

    secret_key: str = Field(default_factory=_draw, min_length=32)
    worker_token: str = Field(default_factory=_draw, min_length=32)
    agent_token: str = Field(default_factory=_draw, min_length=32)
    redis_password: str = Field(default_factory=_draw, min_length=32)


def load_secret_keys(path: Path) -> SecretKeys:
    """The secrets of a file, which is made when it is not there.

    Raises:
        NnfarmError: `request.invalid` when the file is not what this function wrote.
    """
    if not path.exists():
        write_private(path, SecretKeys().model_dump_json(indent=2))
    try:
        return SecretKeys.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise NnfarmError(
            "request.invalid", f"{path} has no usable secrets; delete it to draw new ones"
        ) from error


def write_private(path: Path, content: str) -> None:
    """Write a file only the owner may read, whole or not at all."""
    partial = path.with_name(f".{path.name}.part")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
