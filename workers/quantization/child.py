"""Entry of the sandboxed child that quantizes; see `workers.pipeline.child`.

ONNX Runtime is imported by the child, not here: it takes a second, once a job, and the fork server
stays as it is for the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

from service.contracts.quantization import QuantizeOutcome
from workers.job_child import Report, carry_out
from workers.quantization.job import QuantizeInput


def main(work_dir: Path) -> int:
    """Carry out the quantize job in a folder; exit code 0 when outcome.json was written, else 1."""
    return carry_out(work_dir, _quantize)


def _quantize(work_dir: Path, report: Report) -> QuantizeOutcome:
    from workers.quantization.run import run

    job = QuantizeInput.model_validate_json((work_dir / "job.json").read_text("utf-8"))
    return run(job, work_dir, report)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
