"""Runs of benches: a tuning's kernels, measured on its device. The tuning ends with its run."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.bench import Bench, BenchedKernel, BenchKernel
from service.contracts.errors import NnfarmError, Problem
from service.contracts.jobs import JobStatus, Stage, StageEvent
from service.contracts.kernels import KernelTuning, Signature
from service.contracts.runs import RunStatus
from service.identifiers import new_id
from service.jobs import lifecycle
from service.jobs import repository as jobs
from service.jobs.kind import FINAL
from service.resources.devices import service as device_rules
from service.resources.devices.tables import DeviceRow
from service.resources.runs.tables import RunRow
from service.resources.tunings import records
from service.resources.tunings.kind import TUNING
from service.resources.tunings.tables import TuningRow


def make_run(tuning: TuningRow, bench: Bench) -> RunRow:
    """The run of a tuning's bench on the device that the tuning names."""
    now = utc_now()
    return RunRow(
        id=new_id("run"),
        tuning_id=tuning.id,
        bench=bench,
        feature_level=0,
        abi=bench.abi,
        needed_level=0,
        wanted_device_id=tuning.options.target,
        device_id=tuning.options.target,
        status=RunStatus.QUEUED,
        attempt=0,
        fence=0,
        log_tail="",
        created_at=now,
        queued_at=now,
    )


def lock_run_of(session: Session, tuning_id: str) -> RunRow | None:
    """The run of a tuning, locked until the commit.

    Runs are locked before their tunings, by all who lock both.
    """
    query = select(RunRow).where(RunRow.tuning_id == tuning_id)
    return session.scalar(query.with_for_update().execution_options(populate_existing=True))


def left_of(session: Session, run: RunRow) -> Bench:
    """What earlier attempts, and other tunings meanwhile, have left to measure."""
    tuning = _tuning_of(session, run)
    settled = records.settled(session, tuning.compiler_version, is_simulated(session, tuning))
    known = {key.signature for key in settled if key.abi is run.abi}
    return _bench_of(run).without(frozenset(known | _told(session, tuning)))


def keep(session: Session, run: RunRow, found: Iterable[BenchedKernel]) -> None:
    """Take what the run's holder has measured; the same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced`` where the tuning is over, ``request.invalid`` where the
            words are of kernels or candidates that the bench does not have.
    """
    tuning = _lock_tuning(session, run)
    if tuning.status in FINAL:
        raise NnfarmError("request.fenced", f"{tuning.id} is {tuning.status}.")
    device = _device_of(session, tuning)
    told = _told(session, tuning)
    kernels = {kernel.signature: kernel for kernel in _bench_of(run).kernels}
    for one in found:
        kernel = kernels.get(one.signature)
        if kernel is None or not (one.best is None or one.best < len(kernel.candidates)):
            raise NnfarmError("request.invalid", f"{run.id} has no such kernel or candidate.")
        if one.signature in told:
            continue
        record = _record(run, kernel, one, machine_of(device))
        simulated = device.description.simulated
        records.keep(session, tuning.id, tuning.compiler_version, record, simulated=simulated)
        tuning.done = min(tuning.done + 1, tuning.total)
        _tell(session, tuning, run, "", record)


def publish(session: Session, run: RunRow) -> None:
    """Tell followers of the tuning how its run is; the end of the one is that of the other."""
    tuning = _lock_tuning(session, run)
    if tuning.status in FINAL:
        return
    name = _device_of(session, tuning).description.name
    if run.status is RunStatus.SUCCEEDED:
        tuning.done = tuning.total
        lifecycle.finish(session, tuning, JobStatus.SUCCEEDED, None)
    elif run.status in (RunStatus.FAILED, RunStatus.SKIPPED):
        tuning.log_tail = run.log_tail
        lifecycle.finish(session, tuning, JobStatus.FAILED, _why(run))
    elif run.status is RunStatus.LEASED:
        _tell(session, tuning, run, f"measuring on {name}")
    else:
        _tell(session, tuning, run, f"waiting for {name}")


def is_simulated(session: Session, tuning: TuningRow) -> bool:
    """Whether a tuning's device simulates its latency: nobody else shall use what it finds."""
    return _device_of(session, tuning).description.simulated


def machine_of(device: DeviceRow) -> str:
    """A device in records."""
    return f"{device.description.name} ({device.description.model})"[:200]


def _record(run: RunRow, kernel: BenchKernel, found: BenchedKernel, machine: str) -> KernelTuning:
    return KernelTuning(
        abi=run.abi,
        signature=kernel.signature,
        kernel=kernel.kernel,
        calls=kernel.calls,
        # The worker's trace, not the agent's word: it was checked when the bench came.
        trace=None if found.best is None else kernel.candidates[found.best],
        before=found.before,
        after=found.after,
        rounds=found.rounds,
        tried=found.tried,
        duration_us=found.duration_us,
        machine=machine,
    )


def _tell(
    session: Session,
    tuning: TuningRow,
    run: RunRow,
    message: str,
    tuned: KernelTuning | None = None,
) -> None:
    event = StageEvent(
        stage=Stage.BENCH,
        abi=run.abi,
        done=tuning.done,
        total=tuning.total,
        message=message,
        tuned=tuned,
    )
    jobs.append_event(session, TuningRow, tuning.id, "progress", event.model_dump(mode="json"))


def _why(run: RunRow) -> Problem | None:
    problem = run.problem
    if problem is not None and problem.code == "run.no_device":
        return NnfarmError("tune.no_device", problem.detail).to_problem()
    return problem


def _told(session: Session, tuning: TuningRow) -> set[Signature]:
    found = records.of_tunings(session, [tuning.id]).get(tuning.id, ())
    return {record.signature for record in found}


def _bench_of(run: RunRow) -> Bench:
    assert run.bench is not None
    return run.bench


def _tuning_of(session: Session, run: RunRow) -> TuningRow:
    return lifecycle.require(session, TUNING, run.tuning_id or "")


def _lock_tuning(session: Session, run: RunRow) -> TuningRow:
    return jobs.lock(session, TUNING, run.tuning_id or "") or _tuning_of(session, run)


def _device_of(session: Session, tuning: TuningRow) -> DeviceRow:
    return device_rules.require_device(session, tuning.options.target)
