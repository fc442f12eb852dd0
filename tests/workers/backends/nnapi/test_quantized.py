"""Quantized models: what is claimed at each level, and the numbers against ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from tvm import relax

from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from tests.workers.backends.nnapi.quantized_models import float_models, inputs_of, quantized
from workers.backends.base import Encoding
from workers.backends.nnapi.backend import NnapiBackend
from workers.backends.nnapi.quantized import quantizations
from workers.frontends.onnx import import_onnx
from workers.graph.graph import Graph
from workers.graph.quantization import quantization_of
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import Partition, partition

MODELS = float_models()
KINDS = (("int8", True), ("int8", False), ("uint8", False))
LEVELS = (2, 3, 4, 7)
# Each rounds in its own way: ONNX Runtime from a float product, NNAPI from integers.
STEPS = 1.01
# What begins with a float tensor begins on the CPU there: QUANTIZE came with level 3.
QUANTIZE_LEVEL = 3


OLD = ("conv", "conv_stride", "conv_relu", "depthwise", "gemm", "add", "mul", "max_pool", "reshape")
"""Models whose operations feature level 2 has."""


@dataclass(frozen=True)
class Row:
    """One model in one quantization, compiled for one level."""

    name: str
    model: onnx.ModelProto
    level: int
    split: Partition
    encoding: Encoding
    inputs: dict[str, np.ndarray]


def _label(kind: tuple[str, bool]) -> str:
    return f"{kind[0]}-{'channel' if kind[1] else 'tensor'}"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    made = {}
    for name, model in MODELS.items():
        for kind in KINDS:
            folder = tmp_path_factory.mktemp(name)
            qdq = quantized(model, folder, *kind)
            graph = normalise(import_onnx(folder / "qdq.onnx").graph)
            inputs = inputs_of(model, np.random.default_rng(11))
            for level in LEVELS:
                key = f"{name}-{_label(kind)}-{level}"
                backend = NnapiBackend()
                split = partition(graph, backend, level)
                encoding = backend.encode(split.regions, level)
                made[key] = Row(key, qdq, level, split, encoding, inputs)
    return made


WHOLE = [f"{n}-{_label(k)}-{level}" for n in MODELS for k in KINDS for level in LEVELS[1:]]
WHOLE += [f"{n}-uint8-tensor-2" for n in OLD]
"""Rows that are one subgraph."""


@pytest.mark.parametrize("key", [k for k in WHOLE if not k.endswith("-2")])
def test_all_of_it_is_one_subgraph_from_level_3(rows: dict[str, Row], key: str) -> None:
    report = rows[key].split.report
    refused = [o for o in report.operations if o.rejection is not None]
    assert refused == []
    assert report.subgraph_count == 1


@pytest.mark.parametrize("name", OLD)
def test_level_2_takes_the_integers_and_leaves_the_first_quantize(
    rows: dict[str, Row], name: str
) -> None:
    report = rows[f"{name}-uint8-tensor-2"].split.report
    refused = {o.op_type: o.rejection for o in report.operations if o.rejection is not None}
    assert set(refused) == {"QuantizeLinear"}
    assert refused["QuantizeLinear"].needed_level == QUANTIZE_LEVEL
    assert report.subgraph_count == 1


def test_weights_are_signed_from_level_4_and_unsigned_before(rows: dict[str, Row]) -> None:
    for level, dtype in ((2, "uint8"), (3, "uint8"), (4, "int8"), (7, "int8")):
        numbers = quantizations(rows[f"conv-int8-tensor-{level}"].split.graph).values()
        assert {n.dtype for n in numbers} == {dtype}


@pytest.fixture(scope="module")
def played(
    rows: dict[str, Row],
    tmp_path_factory: pytest.TempPathFactory,
    player_library: Path,
    simulator_dir: Path,
) -> Path:
    """Answers of the simulator to every row that is one subgraph, by one child process."""
    folder = tmp_path_factory.mktemp("answers")
    for key in WHOLE:
        row = rows[key]
        graph, region = row.split.graph, row.split.regions[0]
        inputs = {var.name: _value(graph, var, row.inputs) for var in region.inputs}
        write_subgraph(folder, key, row.encoding, region, inputs)
    play(folder, player_library, simulator_dir)
    return folder


def _value(graph: Graph, var: relax.Var, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """A model input, or what the CPU makes of it in front of the subgraph."""
    if var in graph.inputs:
        return inputs[var.name]
    call = graph.value_of[var]
    source = _value(graph, call.args[0], inputs)
    if call.op.name == "relax.permute_dims":
        return source.transpose([int(axis) for axis in call.attrs.axes])
    numbers = quantization_of(call)
    assert numbers is not None
    is_last = call.op.name == "relax.quantize"
    return numbers.quantize(source) if is_last else numbers.dequantize(source)


@pytest.mark.parametrize("key", WHOLE)
def test_simulator_agrees_with_onnx_runtime_within_one_step(
    key: str, rows: dict[str, Row], played: Path
) -> None:
    row = rows[key]
    expected = onnxruntime.InferenceSession(row.model.SerializeToString()).run(None, row.inputs)
    (got,) = answers(played, key)
    (output,) = row.split.regions[0].outputs
    numbers = quantizations(row.split.graph).get(output)
    got = got if numbers is None else numbers.dequantize(got)
    step = _last_step(row)
    assert np.abs(got.reshape(-1) - expected[0].reshape(-1)).max() <= STEPS * step


def _last_step(row: Row) -> float:
    """Scale of the model's last quantization."""
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in row.model.graph.initializer}
    (last,) = [n for n in row.model.graph.node if n.output[0] == row.model.graph.output[0].name]
    return float(constants[last.input[1]])
