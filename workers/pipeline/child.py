"""Entry of the sandboxed child that compiles: job.json in, outcome.json or problem.json out.

Imported once by the fork server, so that forked children start with TVM loaded. Nothing here may
start a thread at import: threads do not survive a fork.
"""

from __future__ import annotations

import sys
from pathlib import Path

from service.contracts.jobs import CompileOutcome
from workers.backends.nnapi.ops import operations
from workers.job_child import Report, carry_out
from workers.pipeline.plan import JobInput, plan
from workers.pipeline.run import run

operations()  # import the op files before the fork, not in every child


def main(work_dir: Path) -> int:
    """Carry out the compile job in a folder; exit code 0 when outcome.json was written, else 1."""
    return carry_out(work_dir, _compile)


def _compile(work_dir: Path, report: Report) -> CompileOutcome:
    job = JobInput.model_validate_json((work_dir / "job.json").read_text("utf-8"))
    return run(plan(job), work_dir, report)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
