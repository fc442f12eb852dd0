"""The database of tuned kernels: kept as they are measured, given to every compilation."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.artifacts import Sha256
from service.contracts.kernels import KernelTuning, TunedKernel
from service.contracts.targets import Abi
from service.contracts.tuning import KernelKey
from service.identifiers import new_id
from service.resources.tunings.tables import TuningRecordRow

ENOUGH_TRIED = 64
"""Schedules without a faster one after which a kernel is let alone."""


def keep(
    session: Session,
    tuning_id: str,
    compiler_version: str,
    found: KernelTuning,
    *,
    simulated: bool = False,
) -> None:
    """Take what was measured of one kernel. A schedule that is known stays.

    Args:
        session: the transaction.
        tuning_id: whose kernel it is.
        compiler_version: of the tuning.
        found: what was measured.
        simulated: on a device whose times are not a phone's: shown, and used by no compilation.
    """
    query = select(TuningRecordRow).where(
        TuningRecordRow.compiler_hash == compiler_hash(compiler_version),
        TuningRecordRow.abi == found.abi,
        TuningRecordRow.signature == found.signature,
        TuningRecordRow.simulated.is_(simulated),
    )
    row = session.scalar(query.with_for_update())
    if row is None:
        session.add(
            TuningRecordRow(
                id=new_id("ktr"),
                tuning_id=tuning_id,
                compiler_hash=compiler_hash(compiler_version),
                simulated=simulated,
                **found.model_dump(exclude={"before", "after"}),
                before=found.before,
                after=found.after,
            )
        )
        session.flush()
    elif row.trace is None:
        row.tried += found.tried
        row.tuning_id, row.duration_us = tuning_id, found.duration_us
        row.kernel, row.calls, row.machine = found.kernel, found.calls, found.machine
        row.before, row.after, row.rounds = found.before, found.after, found.rounds
        row.created_at = utc_now()
        if found.trace is not None:
            row.id, row.trace = new_id("ktr"), found.trace


def faster(session: Session, compiler_version: str, abis: Collection[Abi]) -> list[TunedKernel]:
    """Every schedule that a compilation for these ABIs may use, in an order of its own."""
    query = select(TuningRecordRow).where(
        TuningRecordRow.compiler_hash == compiler_hash(compiler_version),
        TuningRecordRow.abi.in_(list(abis)),
        TuningRecordRow.trace.is_not(None),
        TuningRecordRow.simulated.is_(False),
    )
    return [_tuned(row) for row in session.scalars(query.order_by(TuningRecordRow.id))]


def settled(
    session: Session, compiler_version: str, simulated: bool = False
) -> tuple[KernelKey, ...]:
    """Kernels that need no tuning: they have a faster schedule, or enough were tried."""
    query = select(TuningRecordRow).where(
        TuningRecordRow.compiler_hash == compiler_hash(compiler_version),
        TuningRecordRow.trace.is_not(None) | (TuningRecordRow.tried >= ENOUGH_TRIED),
        TuningRecordRow.simulated.is_(simulated),
    )
    return tuple(
        KernelKey(abi=row.abi, signature=row.signature)
        for row in session.scalars(query.order_by(TuningRecordRow.id))
    )


def ids_for(
    session: Session, compiler_version: str, kernels: dict[Abi, tuple[Sha256, ...]]
) -> list[str]:
    """Records that a compilation with these kernels uses, sorted."""
    wanted = {(abi, signature) for abi, found in kernels.items() for signature in found}
    tuned = faster(session, compiler_version, list(kernels))
    return sorted(one.record_id for one in tuned if (one.abi, one.signature) in wanted)


def of_tunings(session: Session, ids: Iterable[str]) -> dict[str, list[TuningRecordRow]]:
    """Records by the tuning that made them, those that matter most first."""
    query = select(TuningRecordRow).where(TuningRecordRow.tuning_id.in_(set(ids)))
    found: defaultdict[str, list[TuningRecordRow]] = defaultdict(list)
    for row in session.scalars(query.order_by(TuningRecordRow.created_at, TuningRecordRow.id)):
        found[row.tuning_id].append(row)
    return found


def spent_s(session: Session, tuning_id: str) -> float:
    """Seconds that a tuning's records took; of its earlier attempts, too."""
    query = select(func.sum(TuningRecordRow.duration_us))
    spent_us = session.scalar(query.where(TuningRecordRow.tuning_id == tuning_id))
    return float(spent_us or 0) / 1e6


def compiler_hash(compiler_version: str) -> Sha256:
    """What stands for the compiler: schedules of one need not fit another."""
    return hashlib.sha256(compiler_version.encode()).hexdigest()


def _tuned(row: TuningRecordRow) -> TunedKernel:
    assert row.trace is not None
    return TunedKernel(
        record_id=row.id,
        abi=row.abi,
        signature=row.signature,
        trace=row.trace,
        before_us=row.before.median_us,
        after_us=(row.after or row.before).median_us,
    )
