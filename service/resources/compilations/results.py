"""What a worker delivers for a compilation: checked, kept, and run as was wished."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOutcome
from service.jobs import lifecycle
from service.resources.artifacts import service as artifacts
from service.resources.blobs import repository as blobs
from service.resources.compilations import keys
from service.resources.compilations.kind import COMPILATION
from service.resources.compilations.tables import CompilationRow
from service.resources.models import service as models
from service.resources.runs import service as runs


def complete(session: Session, compilation_id: str, outcome: CompileOutcome) -> None:
    """Take the result, and make the runs that were wished for; the same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``, or ``request.invalid`` for a result that does not fit.
    """
    row = lifecycle.lock_for_result(session, COMPILATION, compilation_id, outcome.attempt)
    if row is None:
        return
    _check_outcome(session, row, outcome)
    model = models.require_model(session, row.model_id)
    built = artifacts.add_artifacts(session, row.id, model.sha256, outcome.artifacts)
    row.evaluation = outcome.evaluation
    keys.rekey(session, row, outcome)
    lifecycle.succeed(session, row, outcome)
    for wish in row.run_wishes:
        runs.create_runs(session, built, wish)


def _check_outcome(session: Session, row: CompilationRow, outcome: CompileOutcome) -> None:
    delivered = [item.target for item in outcome.artifacts]
    if len(delivered) != len(row.targets) or set(delivered) != set(row.targets):
        raise NnfarmError("request.invalid", "The artifacts are not the targets of the job.")
    evaluation = outcome.evaluation
    wanted = {evaluation.inputs_sha256, evaluation.expected_sha256}
    if missing := sorted(wanted - blobs.find_many(session, wanted).keys()):
        raise NnfarmError("request.invalid", f"Evaluation blob {missing[0]} is not stored.")
