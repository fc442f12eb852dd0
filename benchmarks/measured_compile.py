"""The compile child with a meter: `usage.json` beside its outcome says what each stage used."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.usage import Usage
from service.contracts.jobs import CompileOutcome, StageEvent
from workers.backends.nnapi.ops import operations
from workers.job_child import Report, carry_out
from workers.pipeline.plan import JobInput, plan
from workers.pipeline.run import run

FILE_NAME = "usage.json"

operations()  # as the child itself does, before the fork


def main(work_dir: Path) -> int:
    """Carry out the compile job in a folder, measured."""
    return carry_out(work_dir, _compile)


def _compile(work_dir: Path, report: Report) -> CompileOutcome:
    usage = Usage()

    def measured(event: StageEvent) -> None:
        report(event)
        if event.duration_us is None:
            usage.begin()
        else:
            usage.end(event.stage)

    job = JobInput.model_validate_json((work_dir / "job.json").read_text("utf-8"))
    outcome = run(plan(job), work_dir, measured)
    (work_dir / FILE_NAME).write_text(json.dumps(usage.to_json()), "utf-8")
    return outcome
