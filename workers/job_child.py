"""The frame of every sandboxed child: outcome.json or problem.json out, events on the way."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.jobs import JobOutcome, StageEvent

Report = Callable[[StageEvent], None]
"""Takes each event of the job."""


def carry_out(work_dir: Path, job: Callable[[Path, Report], JobOutcome]) -> int:
    """Carry out the job in a folder; exit code 0 when outcome.json was written, else 1.

    Args:
        work_dir: the job's folder, with job.json and what that names.
        job: does the work; an `NnfarmError` of it becomes problem.json.
    """
    try:
        with (work_dir / "events.jsonl").open("a", encoding="utf-8") as events:

            def report(event: StageEvent) -> None:
                events.write(event.model_dump_json() + "\n")
                events.flush()

            outcome = job(work_dir, report)
    except NnfarmError as error:
        _write_problem(work_dir, error)
        return 1
    except MemoryError:
        raise  # the fork server has an exit code for it
    except Exception as error:
        traceback.print_exc()
        sentence = f"{type(error).__name__}: {str(error)[:500]}"
        _write_problem(work_dir, NnfarmError("bug.internal", sentence))
        return 1
    (work_dir / "outcome.json").write_text(outcome.model_dump_json(), "utf-8")
    return 0


def _write_problem(work_dir: Path, error: NnfarmError) -> None:
    if error.kind.error_class is ErrorClass.BUG:
        traceback.print_exc()
    (work_dir / "problem.json").write_text(error.to_problem().model_dump_json(), "utf-8")
