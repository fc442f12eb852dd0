"""Quarantine: a device that only fails gets no runs until it has rested or a person says so."""

from __future__ import annotations

import logging
from datetime import timedelta

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.devices import DeviceState
from service.contracts.errors import NnfarmError
from service.resources.devices import repository
from service.resources.devices.tables import DeviceRow

FAULT_LIMIT = 3
"""Device errors in a row before a device is suspected."""

_log = logging.getLogger(__name__)


def note_fault(session: Session, device_id: str, run_id: str, runs_elsewhere: bool) -> None:
    """Count a device error against the device of a run that has just been released.

    One artifact may crash any phone. The device is to blame only if different runs failed on it,
    or if another device has done what this one could not.

    Args:
        session: the transaction.
        device_id: where the run failed.
        run_id: the run; each of its attempts counts.
        runs_elsewhere: whether the artifact has run on another device.
    """
    row = repository.lock(session, device_id)
    if row is None or row.quarantined_at is not None:
        return
    row.faulted_run_ids = [*row.faulted_run_ids, run_id][-FAULT_LIMIT:]
    is_to_blame = runs_elsewhere or len(set(row.faulted_run_ids)) > 1
    if len(row.faulted_run_ids) < FAULT_LIMIT or not is_to_blame:
        return
    row.quarantined_at = utc_now()
    if row.state is DeviceState.ONLINE:
        row.state = DeviceState.QUARANTINED
    _log.warning("device %s (%s) is in quarantine", row.id, row.description.name)


def note_health(session: Session, device_id: str) -> None:
    """Forget faults: the device has carried out a run."""
    row = repository.lock(session, device_id)
    if row is not None:
        row.faulted_run_ids = []


def is_over(row: DeviceRow, quarantine_s: float) -> bool:
    """Whether the device has rested long enough."""
    if row.quarantined_at is None:
        return True
    return utc_now() - row.quarantined_at >= timedelta(seconds=quarantine_s)


def lift(row: DeviceRow) -> None:
    """Give the device a clean slate."""
    row.quarantined_at = None
    row.faulted_run_ids = []
    if row.state is DeviceState.QUARANTINED:
        row.state = DeviceState.ONLINE


def release(session: Session, device_id: str) -> DeviceRow:
    """Lift a quarantine by hand.

    Raises:
        NnfarmError: ``request.not_found``, or ``request.conflict`` when there is none to lift.
    """
    row = repository.lock(session, device_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no device {device_id}.")
    if row.quarantined_at is None:
        name = row.description.name
        raise NnfarmError("request.conflict", f"{name} is not in quarantine, it is {row.state}.")
    lift(row)
    return row
