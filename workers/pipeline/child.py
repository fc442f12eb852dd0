"""Entry of the sandboxed child: a folder with job.json in, outcome.json or problem.json out.

Imported once by the fork server, so that forked children start with TVM loaded. Nothing here may
start a thread at import: threads do not survive a fork.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.jobs import StageEvent
from workers.backends.nnapi.ops import operations
from workers.pipeline.plan import JobInput, plan
from workers.pipeline.run import run

operations()  # import the op files before the fork, not in every child


def main(work_dir: Path) -> int:
    """Carry out the job in a folder.

    Returns:
        0 when outcome.json was written, 1 when problem.json was.
    """
    try:
        job = JobInput.model_validate_json((work_dir / "job.json").read_text("utf-8"))
        with (work_dir / "events.jsonl").open("a", encoding="utf-8") as events:

            def report(event: StageEvent) -> None:
                events.write(event.model_dump_json() + "\n")
                events.flush()

            outcome = run(plan(job), work_dir, report)
    except NnfarmError as error:
        _write_problem(work_dir, error)
        return 1
    except MemoryError:
        raise
    except Exception as error:
        traceback.print_exc()
        _write_problem(
            work_dir,
            NnfarmError("bug.internal", f"{type(error).__name__}: {str(error)[:500]}"),
        )
        return 1
    (work_dir / "outcome.json").write_text(outcome.model_dump_json(), "utf-8")
    return 0


def _write_problem(work_dir: Path, error: NnfarmError) -> None:
    if error.kind.error_class is ErrorClass.BUG:
        traceback.print_exc()
    (work_dir / "problem.json").write_text(error.to_problem().model_dump_json(), "utf-8")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
