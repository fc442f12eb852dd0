"""The parts a request works with, made once at start and handed to routes by FastAPI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from service.bell import Bell
from service.db import Database
from service.settings import Settings
from service.storage.store import BlobStore
from service.tokens import TokenSigner


@dataclass(frozen=True)
class Components:
    """Settings and the things made from them."""

    settings: Settings
    bell: Bell
    database: Database
    blobs: BlobStore
    tokens: TokenSigner


def _components(request: Request) -> Components:
    components = request.app.state.components
    assert isinstance(components, Components)
    return components


ComponentsDep = Annotated[Components, Depends(_components)]


def _reading(components: ComponentsDep) -> Iterator[Session]:
    with components.database.reading() as session:
        yield session


def _writing(components: ComponentsDep) -> Iterator[Session]:
    with components.database.writing() as session:
        yield session


# Function scope: the commit is over, or has failed, before the answer is sent.
ReadSession = Annotated[Session, Depends(_reading, scope="function")]
WriteSession = Annotated[Session, Depends(_writing, scope="function")]
