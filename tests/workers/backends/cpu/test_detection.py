"""A detector built as for a phone, its last operation among what has a schedule of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

from service.contracts.jobs import ModelFormat
from tests.workers.backends.nnapi.test_detection import RESULTS, detector
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.cpu.tuned import Tunings
from workers.pipeline.stages.ingest import ingest
from workers.pipeline.stages.runtimes import run_original


@pytest.mark.parametrize("is_by_class", [False, True], ids=["fast", "regular"])
def test_detections_are_those_of_litert(
    is_by_class: bool, target: tvm.target.Target, tmp_path: Path
) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(use_regular_nms=is_by_class))
    model = ingest(path, ModelFormat.TFLITE, {})
    lowered, uncovered = lower_for_cpu(model.graph.module, target, Tunings())
    assert uncovered == ()
    machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
    image = np.random.default_rng(1).standard_normal((1, 1, 4, 4, 3)).astype(np.float32)
    want = run_original(path, ModelFormat.TFLITE, model.signature, {"image": image})
    found = machine["main"](tvm.runtime.tensor(image[0]))
    count = int(want["count"][0][0])
    assert count > 0
    for name, result in zip(RESULTS, found, strict=True):
        ours, theirs = result.numpy(), want[name][0]
        if name != "count":  # behind the last detection LiteRT may leave anything
            ours, theirs = ours[:, :count], theirs[:, :count]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
