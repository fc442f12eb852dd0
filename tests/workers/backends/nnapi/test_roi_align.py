"""Regions of an image: ONNX Runtime's numbers from ROI_ALIGN where its rules are ONNX's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from service.contracts.jobs import Precision
from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.graph.graph import static_shape
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

IMAGE = np.random.default_rng(3).standard_normal((2, 3, 9, 12)).astype(np.float32)
REGIONS = np.array([[1, 2, 30, 20], [0, 0, 5, 3], [4.5, 3.25, 44, 31.5], [7, 7, 7, 9]], np.float32)
"""Four times the image's pixels; one reaches over its edge, one is less than a pixel wide."""
IMAGES = np.array([0, 1, 1, 0], np.int64)


def model(
    mode: str = "output_half_pixel",
    scale: float = 0.25,
    ratio: int = 0,
    known: tuple[str, ...] = ("images",),
    regions: np.ndarray = REGIONS,
) -> onnx.ModelProto:
    values = {"x": IMAGE, "regions": regions, "images": IMAGES}
    node = helper.make_node(
        "RoiAlign", list(values), ["y"], name="align", output_height=3, output_width=2,
        spatial_scale=scale, sampling_ratio=ratio, coordinate_transformation_mode=mode,
    )  # fmt: skip
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in values.items()
        if name not in known
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (len(regions), 3, 3, 2))
    constants = [numpy_helper.from_array(values[name], name) for name in known]
    graph = helper.make_graph([node], "regions", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=9)


ALL = ("regions", "images")
TAKEN = {
    "samples by size": model(),
    "two samples": model(scale=0.3, ratio=2),
    "known regions": model(known=ALL),
    "computed images": model(ratio=2, known=()),
    "half pixels": model("half_pixel", known=ALL, regions=REGIONS[:1].repeat(4, 0)),
}
REFUSED = {
    "half pixels": (model("half_pixel"), "less than a pixel"),
    "small known regions": (model("half_pixel", known=ALL), "less than a pixel"),
    "samples by rounded sizes": (model(scale=0.3), "samples may differ"),
}


def given(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    values = {"x": IMAGE, "regions": REGIONS, "images": IMAGES}
    return {value.name: values[value.name] for value in proto.graph.input}


def expected(proto: onnx.ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    result: np.ndarray = session.run(None, given(proto))[0]
    return result


def test_numbers_are_those_of_onnx_runtime(
    tmp_path: Path, player_library: Path, simulator_dir: Path
) -> None:
    path, played = tmp_path / "model.onnx", tmp_path / "played"
    played.mkdir()
    for name, proto in TAKEN.items():
        onnx.save(proto, path)
        graph = normalise(import_onnx(path).graph)
        assert not partition(graph, NnapiBackend(), 2).regions
        for level in (3, 7):
            backend = NnapiBackend()
            split = partition(graph, backend, level)
            assert "ROI_ALIGN" in split.report.operations[0].nnapi_operations, name
            (region,) = split.regions
            values = {"x": IMAGE, "regions": REGIONS}
            for var in region.inputs:
                if var.name not in values:  # the images' numbers, which the CPU makes real
                    column = IMAGES.astype(np.float32)
                    values[var.name] = column.reshape(static_shape(var) or ())
            encoding = backend.encode(split.regions, level)
            write_subgraph(played, f"{name} {level}", encoding, region, values)
    play(played, player_library, simulator_dir)
    for name, proto in TAKEN.items():
        for level in (3, 7):
            (ours,) = answers(played, f"{name} {level}")
            np.testing.assert_allclose(ours, expected(proto), rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("proto", "words"), REFUSED.values(), ids=REFUSED)
def test_other_rules_stay_on_the_cpu(proto: onnx.ModelProto, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    graph = normalise(import_onnx(path).graph)
    (row,) = partition(graph, NnapiBackend(), 7).report.operations
    assert row.rejection is not None
    assert words in row.rejection.sentence
    target = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu"})
    lowered, uncovered = lower_for_cpu(graph.module, target)
    assert uncovered == ()
    machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
    ours = machine["main"](*map(tvm.runtime.tensor, given(proto).values())).numpy()
    np.testing.assert_allclose(ours, expected(proto), rtol=1e-5, atol=1e-5)


def test_half_precision_would_find_other_pixels(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(TAKEN["two samples"], path)
    graph = normalise(import_onnx(path).graph)
    (row,) = partition(graph, NnapiBackend(Precision.FLOAT16), 7).report.operations
    assert row.rejection is not None
    assert "float16" in row.rejection.sentence
