"""Keys of compilations: what was asked for, and the tuned kernels it was built with.

Which records a compilation uses is known once it was built: its kernels come out of the compiler.
So the first one of a request is keyed by the request alone until it is done; later requests look up
what its kernels would be given today.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.contracts.artifacts import Sha256
from service.contracts.jobs import CompileOptions, CompileOutcome, CompileTarget, JobStatus
from service.jobs import repository
from service.jobs.keys import content_key
from service.resources.compilations.kind import COMPILATION
from service.resources.compilations.tables import CompilationRow
from service.resources.tunings import records


def request_key(
    model_sha256: Sha256,
    dataset_sha256: Sha256 | None,
    targets: tuple[CompileTarget, ...],
    options: CompileOptions,
    compiler_version: str,
) -> Sha256:
    """What was asked for, of which compiler."""
    return content_key(
        model=model_sha256,
        dataset=dataset_sha256,
        targets=[[target.abi, target.feature_level] for target in targets],
        options=_in_any_order(options),
        compiler=compiler_version,
    )


def current_key(session: Session, request: Sha256, compiler_version: str) -> Sha256:
    """The key of the request with the records that it would be built with now."""
    query = select(CompilationRow).where(
        CompilationRow.request_key == request,
        CompilationRow.status == JobStatus.SUCCEEDED,
        CompilationRow.kernels.is_not(None),
    )
    built = session.scalar(query.order_by(CompilationRow.id.desc()).limit(1))
    if built is None or built.kernels is None:
        return request
    return _with_records(request, records.ids_for(session, compiler_version, built.kernels))


def rekey(session: Session, row: CompilationRow, outcome: CompileOutcome) -> None:
    """Name in the key what the compilation was built with."""
    row.kernels = outcome.kernels
    if row.request_key is None:
        return
    used = {a.record_id for built in outcome.artifacts for a in built.manifest.tuned_kernels}
    key = _with_records(row.request_key, sorted(used))
    # Two requests may have been built with the same records; the first one keeps the key.
    if repository.lock_by_key(session, COMPILATION, key) is None:
        row.cache_key = key


def _with_records(request: Sha256, record_ids: Sequence[str]) -> Sha256:
    return content_key(request=request, tuned=list(record_ids)) if record_ids else request


def _in_any_order(options: CompileOptions) -> dict[str, object]:
    """Options as JSON, the lists whose order says nothing sorted."""
    sets = ("exclude_ops", "exclude_nodes", "only_nodes", "cpu_variants")
    return options.model_dump() | {name: sorted(set(getattr(options, name))) for name in sets}
