"""Queries on runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import CursorResult, false, func, or_, select, true, update
from sqlalchemy.orm import Session

from service.contracts.runs import RunStatus
from service.pages import PageRequest, fetch_page
from service.resources.devices.tables import DeviceRow
from service.resources.runs.tables import RunRow

FINAL = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.SKIPPED)
_CANDIDATES = 50


def find(session: Session, run_id: str) -> RunRow | None:
    """The run with this id; that of a bench is shown with its tuning only."""
    run = session.get(RunRow, run_id)
    return run if run is not None and run.tuning_id is None else None


def lock(session: Session, run_id: str) -> RunRow | None:
    """The run as it is now, locked until the commit."""
    return session.get(RunRow, run_id, with_for_update=True, populate_existing=True)


def page(
    session: Session, request: PageRequest, compilation_id: str | None
) -> tuple[list[RunRow], str | None]:
    """One page of runs, of one compilation or of all."""
    query = select(RunRow).where(RunRow.tuning_id.is_(None))
    if compilation_id is not None:
        query = query.where(RunRow.compilation_id == compilation_id)
    return fetch_page(session, query, RunRow.id, request)


def of_compilations(session: Session, ids: Iterable[str]) -> dict[str, list[RunRow]]:
    """Runs by compilation, oldest first."""
    query = select(RunRow).where(RunRow.compilation_id.in_(set(ids))).order_by(RunRow.id)
    found: defaultdict[str, list[RunRow]] = defaultdict(list)
    for row in session.scalars(query):
        found[row.compilation_id or ""].append(row)
    return found


def count_unfinished(session: Session, compilation_id: str) -> int:
    """How many runs of a compilation are not final."""
    query = select(func.count()).where(
        RunRow.compilation_id == compilation_id, RunRow.status.not_in(FINAL)
    )
    return session.scalar(query) or 0


def candidates(session: Session, device: DeviceRow, *, benches: bool) -> list[RunRow]:
    """Queued runs this device can do: not yet failed on it first, then by level, then by age.

    Args:
        session: the transaction.
        device: a free one.
        benches: whether its agent takes runs of benches.
    """
    query = (
        select(RunRow)
        .where(
            RunRow.status == RunStatus.QUEUED,
            RunRow.abi.in_(device.description.abis),
            RunRow.needed_level <= device.description.feature_level,
            or_(RunRow.wanted_device_id.is_(None), RunRow.wanted_device_id == device.id),
            or_(RunRow.tuning_id.is_(None), true() if benches else false()),
        )
        .order_by(
            func.coalesce(RunRow.avoided_device_id == device.id, False),
            RunRow.feature_level.desc(),
            RunRow.id,
        )
        .limit(_CANDIDATES)
    )
    return list(session.scalars(query))


def take(
    session: Session, run_id: str, device: DeviceRow, now: datetime, expires_at: datetime
) -> bool:
    """Give a queued run to a device; answers False when another transaction was faster."""
    result = session.execute(
        update(RunRow)
        .where(RunRow.id == run_id, RunRow.status == RunStatus.QUEUED)
        .values(
            status=RunStatus.LEASED,
            device_id=device.id,
            agent_name=device.agent_name,
            attempt=RunRow.attempt + 1,
            fence=RunRow.fence + 1,
            lease_expires_at=expires_at,
            started_at=now,
            problem=None,
        )
        .execution_options(synchronize_session=False)
    )
    assert isinstance(result, CursorResult)
    return bool(result.rowcount)


def has_succeeded_elsewhere(session: Session, artifact_id: str, device_id: str) -> bool:
    """Whether the artifact has run on another device."""
    query = select(RunRow.id).where(
        RunRow.artifact_id == artifact_id,
        RunRow.status == RunStatus.SUCCEEDED,
        RunRow.device_id != device_id,
    )
    return session.scalar(query.limit(1)) is not None


def leased_device_ids(session: Session) -> set[str]:
    """Devices with a run in hand."""
    query = select(RunRow.device_id).where(RunRow.status == RunStatus.LEASED)
    return {device_id for device_id in session.scalars(query) if device_id}


def ids_with_expired_lease(session: Session, now: datetime) -> list[str]:
    """Leased runs whose agent has been silent for too long."""
    query = select(RunRow.id).where(
        RunRow.status == RunStatus.LEASED, RunRow.lease_expires_at < now
    )
    return list(session.scalars(query))


def queued(session: Session, queued_before: datetime) -> list[RunRow]:
    """Runs that have waited since before this moment."""
    query = select(RunRow).where(
        RunRow.status == RunStatus.QUEUED, RunRow.queued_at < queued_before
    )
    return list(session.scalars(query))
