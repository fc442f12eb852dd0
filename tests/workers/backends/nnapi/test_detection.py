"""A whole detector: LiteRT's detections on NNAPI, and why they stay on the CPU where they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.contracts.jobs import ModelFormat, Precision
from service.contracts.tensors import ModelSignature
from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from tests.workers.tflite_models import Step, Value, constant, tflite_model
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.tflite.importer import import_tflite
from workers.graph.graph import Graph
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition
from workers.pipeline.stages.runtimes import run_original

RNG = np.random.default_rng(11)
RESULTS = ["boxes", "classes", "scores", "count"]
LEVEL = 3
"""That of the operation."""


def weights(*shape: int) -> Value:
    return constant(RNG.standard_normal(shape), "float32")


def detector(background: int = 1, is_quantized: bool = False, **options: Any) -> bytes:
    """Two convolutions over an image, one for 32 boxes, one for three classes of each."""
    settings = {
        "num_classes": 3, "max_detections": 6, "max_classes_per_detection": 1,
        "nms_score_threshold": 0.3, "nms_iou_threshold": 0.4, "use_regular_nms": False,
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, **options,
    }  # fmt: skip
    columns = 3 + background
    settings["num_classes"] = 3
    slots = settings["max_detections"] * settings["max_classes_per_detection"]
    anchors = np.concatenate([RNG.uniform(0, 1, (32, 2)), RNG.uniform(0.2, 0.5, (32, 2))], 1)
    values = {
        "image": Value((1, 4, 4, 3)), "wb": weights(8, 3, 3, 3), "bb": weights(8),
        "ws": weights(2 * columns, 3, 3, 3), "bs": weights(2 * columns),
        "raw": Value((1, 4, 4, 8)), "deltas": Value((1, 32, 4)),
        "logits": Value((1, 4, 4, 2 * columns)), "rows": Value((1, 32, columns)),
        "odds": Value((1, 32, columns)), "anchors": constant(anchors, "float32"),
        "byte": Value((1, 32, columns), "uint8", scale=1 / 256),
        "boxes": Value((1, slots, 4)), "classes": Value((1, slots)), "scores": Value((1, slots)),
        "count": Value((1,)), "coarse": Value((1, 32, columns)),
    }  # fmt: skip
    conv = {"padding": 0, "strideH": 1, "strideW": 1}
    found = "coarse" if is_quantized else "odds"
    steps = [
        Step("CONV_2D", ["image", "wb", "bb"], ["raw"], "Conv2DOptions", conv),
        Step("RESHAPE", ["raw"], ["deltas"], "ReshapeOptions", {"newShape": [1, 32, 4]}),
        Step("CONV_2D", ["image", "ws", "bs"], ["logits"], "Conv2DOptions", conv),
        Step("RESHAPE", ["logits"], ["rows"], "ReshapeOptions", {"newShape": [1, 32, columns]}),
        Step("LOGISTIC", ["rows"], ["odds"]),
        Step("QUANTIZE", ["odds"], ["byte"]), Step("DEQUANTIZE", ["byte"], ["coarse"]),
        Step("TFLite_Detection_PostProcess", ["deltas", found, "anchors"], RESULTS,
             attributes=settings, custom=True),
    ]  # fmt: skip
    return tflite_model(values, steps, ["image"], RESULTS)


def _imported(model: bytes, folder: Path) -> tuple[Path, Graph, ModelSignature]:
    path = folder / "detector.tflite"
    path.write_bytes(model)
    imported = import_tflite(path)
    return path, normalise(imported.graph), imported.signature


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"background": 0},
        {"use_regular_nms": True, "detections_per_class": 2},
        {"use_regular_nms": True, "nms_score_threshold": 0.99},
    ],
    ids=["fast", "no background", "regular", "few"],
)
def test_is_one_operation_with_the_detections_of_litert(
    options: dict[str, Any], tmp_path: Path, player_library: Path, simulator_dir: Path
) -> None:
    path, graph, signature = _imported(detector(**options), tmp_path)
    backend = NnapiBackend()
    split = partition(graph, backend, LEVEL)
    (region,) = split.regions
    assert split.report.offloaded_count == split.report.operation_count
    operations = [name for unit in region.units for name in unit.operations]
    assert operations.count("DETECTION_POSTPROCESSING") == 1
    image = RNG.standard_normal((1, 1, 4, 4, 3)).astype(np.float32)
    want = run_original(path, ModelFormat.TFLITE, signature, {"image": image})
    encoding = backend.encode(split.regions, LEVEL)
    write_subgraph(tmp_path, "one", encoding, region, {"image": image[0]})
    play(tmp_path, player_library, simulator_dir)
    got = dict(zip([v.name for v in region.outputs], answers(tmp_path, "one"), strict=True))
    count = int(want["count"][0][0])
    assert 0 < count <= 6
    for name, variable in zip(RESULTS, split.graph.outputs, strict=True):
        expected, result = want[name][0], got[variable.name]
        if name != "count":  # behind the last detection LiteRT may leave anything
            expected, result = expected[:, :count], result[:, :count]
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "precision", "sentence"),
    [
        ({"max_classes_per_detection": 2}, Precision.FLOAT32, "counts the classes of a box"),
        ({"nms_score_threshold": 0.0}, Precision.FLOAT32, "takes no detection of score 0"),
        ({"is_quantized": True}, Precision.FLOAT32, "leaves the order of equal scores open"),
        ({}, Precision.FLOAT16, "would see equal scores"),
    ],
)
def test_what_nnapi_would_do_otherwise_stays_on_the_cpu(
    options: dict[str, Any], precision: Precision, sentence: str, tmp_path: Path
) -> None:
    _, graph, _ = _imported(detector(**options), tmp_path)
    report = partition(graph, NnapiBackend(precision), LEVEL).report
    row = next(r for r in report.operations if r.op_type == "TFLite_Detection_PostProcess")
    assert row.rejection is not None
    assert row.rejection.code == "nnapi.operands"
    assert sentence in row.rejection.sentence


def test_needs_its_level(tmp_path: Path) -> None:
    _, graph, _ = _imported(detector(), tmp_path)
    row = partition(graph, NnapiBackend(), LEVEL - 1).report.operations[-1]
    assert row.rejection is not None
    assert row.rejection.needed_level == LEVEL
