"""Entry of the sandboxed child that tunes; see `workers.pipeline.child`.

MetaSchedule is imported by the child, not here: other jobs have no use for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from service.contracts.tuning import TuneOutcome
from workers.job_child import Report, carry_out
from workers.tuning.job import TuneInput


def main(work_dir: Path) -> int:
    """Carry out the tune job in a folder; exit code 0 when outcome.json was written, else 1."""
    return carry_out(work_dir, _tune)


def _tune(work_dir: Path, report: Report) -> TuneOutcome:
    job = TuneInput.model_validate_json((work_dir / "job.json").read_text("utf-8"))
    if job.spec.bench_abi is not None:
        from workers.tuning.device import build_bench

        return build_bench(job, job.spec.bench_abi, work_dir, report)
    from workers.tuning.run import run

    return run(job, report)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
