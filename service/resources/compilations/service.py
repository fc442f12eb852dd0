"""Rules of compile requests: what is asked for, and what was built before."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from service.contracts.artifacts import Sha256
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileTarget, JobStatus
from service.contracts.targets import (
    MAX_FEATURE_LEVEL,
    MIN_FEATURE_LEVEL,
    Abi,
    require_usable,
)
from service.identifiers import new_id
from service.jobs import lifecycle
from service.resources.artifacts import repository as artifacts
from service.resources.artifacts.schemas import artifact_summary
from service.resources.compilations import keys
from service.resources.compilations.kind import COMPILATION
from service.resources.compilations.schemas import Compilation, CompilationRequest
from service.resources.compilations.tables import CompilationRow, RunWish
from service.resources.datasets import service as datasets
from service.resources.devices import repository as devices
from service.resources.devices import service as device_rules
from service.resources.models import repository as models
from service.resources.models import service as model_rules
from service.resources.models.schemas import Model
from service.resources.runs import repository as runs
from service.resources.runs import service as run_rules
from service.resources.runs.schemas import run_summary


def request_compilation(
    session: Session, request: CompilationRequest, compiler_version: str
) -> tuple[CompilationRow, bool]:
    """Begin a compilation, or join the one of the same key; answers the row and whether it is new.

    Raises:
        NnfarmError: ``compile.bad_level``, ``compile.bad_abi``, ``compile.bad_option``,
            ``request.not_found`` or ``dataset.mismatch``.
    """
    targets = _targets(request)
    model = model_rules.require_model(session, request.model_id)
    dataset_sha256: Sha256 | None = None
    if request.dataset_id is not None:
        dataset = datasets.require_dataset_of(session, request.dataset_id, request.model_id)
        dataset_sha256 = dataset.sha256
    wish: RunWish | None = None if request.run_on == "none" else request.run_on
    if isinstance(wish, list):
        wish = list(dict.fromkeys(wish))
        for device_id in wish:
            device_rules.require_device(session, device_id)
    asked = keys.request_key(
        model.sha256, dataset_sha256, targets, request.options, compiler_version
    )
    key = keys.current_key(session, asked, compiler_version)

    def new_row() -> CompilationRow:
        row = _new_row(request, key, targets, wish)
        row.request_key, row.compiler_version = asked, compiler_version
        return row

    row, is_new = lifecycle.begin_or_join(session, COMPILATION, key, new_row)
    if not is_new:
        _add_wish(session, row, wish)
    return row, is_new


def views(session: Session, rows: Sequence[CompilationRow]) -> list[Compilation]:
    """Rows as the API shows them, with everything that hangs on them."""
    ids = [row.id for row in rows]
    model_rows = models.find_many(session, (row.model_id for row in rows))
    artifact_rows = artifacts.of_compilations(session, ids)
    run_rows = runs.of_compilations(session, ids)
    device_ids = {run.device_id for found in run_rows.values() for run in found if run.device_id}
    device_rows = devices.find_many(session, device_ids)
    return [
        Compilation(
            id=row.id,
            model=Model.model_validate(model_rows[row.model_id]),
            dataset_id=row.dataset_id,
            levels=sorted({target.feature_level for target in row.targets}),
            abis=sorted({target.abi for target in row.targets}),
            options=row.options,
            status=row.status,
            stage=row.stage,
            done=row.done,
            total=row.total,
            attempt=row.attempt,
            cached=False,
            error=row.problem,
            artifacts=[artifact_summary(item) for item in artifact_rows.get(row.id, ())],
            runs=[
                run_summary(run, device_rows.get(run.device_id or ""))
                for run in run_rows.get(row.id, ())
            ],
            evaluation=row.evaluation,
            stage_durations_us=row.stage_durations_us,
            created_at=row.created_at,
            started_at=row.started_at,
            finished_at=row.finished_at,
        )
        for row in rows
    ]


def _targets(request: CompilationRequest) -> tuple[CompileTarget, ...]:
    for level in request.levels:
        if not MIN_FEATURE_LEVEL <= level <= MAX_FEATURE_LEVEL:
            raise NnfarmError(
                "compile.bad_level",
                f"Feature level {level} is not one of {MIN_FEATURE_LEVEL} to {MAX_FEATURE_LEVEL}.",
                level=level,
            )
    known = [abi.value for abi in Abi]
    for abi in request.abis:
        if abi not in known:
            raise NnfarmError(
                "compile.bad_abi", f"ABI {abi!r} is not one of {', '.join(known)}.", abi=abi
            )
    require_usable(request.options.cpu_variants, request.abis)
    return tuple(
        CompileTarget(feature_level=level, abi=Abi(abi))
        for abi in sorted(set(request.abis))
        for level in sorted(set(request.levels))
    )


def _new_row(
    request: CompilationRequest,
    key: Sha256,
    targets: tuple[CompileTarget, ...],
    wish: RunWish | None,
) -> CompilationRow:
    return CompilationRow(
        id=new_id("cmp"),
        model_id=request.model_id,
        dataset_id=request.dataset_id,
        cache_key=key,
        targets=targets,
        options=request.options,
        run_wishes=[] if wish is None else [wish],
    )


def _add_wish(session: Session, row: CompilationRow, wish: RunWish | None) -> None:
    """Have a joined compilation run as this request asked: now, or once it has succeeded."""
    if wish is None:
        return
    if row.status is JobStatus.SUCCEEDED:
        built = artifacts.of_compilations(session, [row.id]).get(row.id, [])
        run_rules.create_runs(session, built, wish)
    elif wish not in row.run_wishes:
        row.run_wishes = [*row.run_wishes, wish]
