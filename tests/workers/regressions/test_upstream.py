"""Each thing TVM's own partition gets wrong is right here: by decision, and by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from service.contracts.jobs import Precision
from service.contracts.targets import MAX_FEATURE_LEVEL
from tests.workers.backends.nnapi.quantized_models import quantized
from tests.workers.onnx_models import make_model, single, weights
from tests.workers.properties.phone import LEVELS, Array, Phone
from tests.workers.regressions.upstream_cases import NEVER_TAKEN, WRONG, Case
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition


def _inputs(model: onnx.ModelProto) -> Mapping[str, Array]:
    random = np.random.default_rng(2)
    return {
        value.name: (
            random.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim]) * 3
        ).astype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        for value in model.graph.input
    }


@pytest.mark.parametrize("case", [*WRONG, *NEVER_TAKEN], ids=lambda case: case.name)
def test_computes_as_onnx_runtime_and_is_whole_from_its_level_on(case: Case, phone: Phone) -> None:
    for level in LEVELS:
        answer = phone.compare(case.model, _inputs(case.model), level)
        assert (not answer.rejected) == (level >= case.level), (level, answer)
        if level >= case.level:
            assert len(answer.documents) == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantize_and_dequantize_are_taken(dtype: str, tmp_path: Path, phone: Phone) -> None:
    constants = {"w": weights(6, 4, 3, 3), "b": weights(6, seed=1)}
    conv = single("Conv", {"x": [1, 4, 8, 8]}, constants)
    model = quantized(conv, tmp_path, dtype, per_channel=True)
    for level in LEVELS:
        answer = phone.compare(model, _inputs(model), level)
        if level >= 3:
            assert not answer.rejected
            assert len(answer.documents) == 1


@pytest.mark.parametrize("axis", [-1, 0])
def test_float16_softmax_is_the_softmax_of_its_axis(axis: int, tmp_path: Path) -> None:
    """Upstream made a float16 model of float32 operands."""
    path = tmp_path / "softmax.onnx"
    onnx.save(single("Softmax", {"x": [2, 5]}, axis=axis), path)
    graph = normalise(import_onnx(path).graph)
    backend = NnapiBackend(Precision.FLOAT16)
    split = partition(graph, backend, 3)
    (model,) = [region.module_bytes for region in backend.encode(split.regions, 3).regions]
    names = [n for unit in split.regions[0].units for n in unit.operations]
    assert names == ["SOFTMAX"]
    assert model.count(b'"CAST"') == 2  # float32 at the border only


def test_symbolic_shape_is_refused_before_anything_is_claimed(tmp_path: Path) -> None:
    path = tmp_path / "symbolic.onnx"
    onnx.save(single("Relu", {"x": [2, "time"]}), path)
    split = partition(normalise(import_onnx(path).graph), NnapiBackend(), MAX_FEATURE_LEVEL)
    assert not split.regions
    assert [row.rejection.code for row in split.report.operations if row.rejection] == [
        "nnapi.dynamic_shape"
    ]


def test_a_chain_is_one_subgraph_and_not_one_for_each_operation(phone: Phone) -> None:
    ops = ("Relu", "Sigmoid", "Tanh", "Floor", "Relu")
    names = ["x", *(f"t{i}" for i in range(len(ops) - 1)), "y"]
    nodes = [
        helper.make_node(op, [names[i]], [names[i + 1]], name=f"{op}{i}")
        for i, op in enumerate(ops)
    ]
    model = make_model(nodes, {"x": [2, 5]}, ["y"])
    for level in LEVELS:
        assert len(phone.compare(model, _inputs(model), level).documents) == 1
