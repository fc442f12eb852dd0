"""A quantize job carried out: every stage timed and reported, the model in the job's folder."""

from __future__ import annotations

import time
from pathlib import Path

from service.contracts.jobs import ModelFormat, Stage
from service.contracts.quantization import QuantizeOutcome
from workers.job_child import Report
from workers.pipeline.blobs import BlobFolder
from workers.pipeline.stages.reference import samples_for
from workers.pipeline.stages.runtimes import run_original
from workers.quantization.calibration import calibrate
from workers.quantization.cost import measure_cost
from workers.quantization.float_model import prepare
from workers.quantization.job import QuantizeInput
from workers.quantization.progress import Progress
from workers.quantization.quantizer import quantize


def run(job: QuantizeInput, work_dir: Path, report: Report) -> QuantizeOutcome:
    """Quantize the model of a job and say what that costs.

    Args:
        job: what to quantize, and how.
        work_dir: the job's folder; blobs/ gets the model.
        report: called with progress.

    Raises:
        NnfarmError: the first thing that cannot be done.
    """
    started = time.perf_counter()
    spec, signature = job.spec, job.spec.signature
    scratch = work_dir / "scratch"
    scratch.mkdir()
    samples = samples_for(signature, job.dataset_path)
    progress = Progress(report, samples.count)
    progress.begin(Stage.PREPARE)
    model = prepare(job.model_path, spec.options.exclude_nodes, scratch)
    progress.begin(Stage.CALIBRATE)
    ranges = calibrate(model, samples.inputs, spec.options, scratch, progress.sample_done)
    progress.begin(Stage.QUANTIZE)
    quantized = scratch / "quantized.onnx"
    counts = quantize(model, ranges, spec.options, quantized)
    progress.begin(Stage.MEASURE)
    wanted, found = (
        run_original(path, ModelFormat.ONNX, signature, samples.inputs)
        for path in (job.model_path, quantized)
    )
    names = [output.name for output in signature.outputs]
    cost = measure_cost(wanted, found, names, samples.labels)
    progress.end()
    size_bytes = quantized.stat().st_size
    return QuantizeOutcome(
        attempt=spec.attempt,
        model_sha256=BlobFolder(work_dir / "blobs").add_file(quantized),
        model_size_bytes=size_bytes,
        quantized_count=counts[0],
        operation_count=counts[1],
        cost=cost,
        stage_durations_us=progress.durations_us,
        child_duration_us=round((time.perf_counter() - started) * 1e6),
    )
