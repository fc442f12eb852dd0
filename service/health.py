"""Whether the process lives, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import text

from service.components import ComponentsDep

router = APIRouter(tags=["health"])

_NO_SUCH_BLOB = "0" * 64


class Health(BaseModel):
    """The good answer; the bad one is a problem."""

    status: str = "ok"


@router.get("/healthz")
def show_liveness() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz")
def show_readiness(components: ComponentsDep) -> Health:
    """Database and blob store answer; 503 tells which does not.

    The queue is not asked: requests are taken while it is away, the outbox keeps their tasks.
    """
    with components.database.reading() as session:
        session.execute(text("SELECT 1"))
    components.blobs.size(_NO_SUCH_BLOB)
    return Health()
