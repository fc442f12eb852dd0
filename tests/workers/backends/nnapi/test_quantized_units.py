"""Units of dequantize, operation and quantize written by hand: those no tool of ours writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from tests.workers.onnx_models import make_model, weights
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

SCALE, ZERO = np.float32(0.05), np.int8(3)
STEPS = 1.01


@dataclass(frozen=True)
class Unit:
    """One operation on quantized tensors.

    Attributes:
        op: ONNX operation.
        operations: what it becomes, without the QUANTIZE and DEQUANTIZE at the border.
        level: least level that computes it on integers.
        shapes: of its inputs.
        slope: a constant operand, quantized too.
        output: element type of the result, "real" for a quantized one.
        attributes: of the node.
    """

    op: str
    operations: tuple[str, ...]
    level: int
    shapes: Sequence[Sequence[int]] = ((1, 4, 6, 6),)
    slope: np.ndarray | None = None
    output: str = "real"
    attributes: Mapping[str, object] = field(default_factory=dict)


UNITS = {
    "prelu": Unit("PRelu", ("PRELU",), 3, slope=weights(4, 1, 1)),
    "hard_swish": Unit("HardSwish", ("HARD_SWISH",), 4),
    "stacks": Unit("MatMul", ("BATCH_MATMUL",), 6, ((2, 3, 4), (2, 4, 5))),
    "reduce_max": Unit("ReduceMax", ("REDUCE_MAX",), 3, attributes={"axes": [1], "keepdims": 0}),
    "maximum": Unit("Max", ("MAXIMUM",), 3, ((2, 5), (2, 5))),
    "arg_max": Unit("ArgMax", ("ARGMAX",), 3, ((3, 5),), output="int64", attributes={"axis": 1}),
    "greater": Unit("Greater", ("GREATER",), 3, ((2, 5), (2, 5)), output="bool"),
}
"""By name."""


def _model(unit: Unit) -> onnx.ModelProto:
    constants: dict[str, np.ndarray] = {"s": SCALE, "z": ZERO}
    nodes, names = [], []

    def node(op: str, inputs: Sequence[str], output: str) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=output))
        return output

    for index in range(len(unit.shapes)):
        integers = node("QuantizeLinear", [f"x{index}", "s", "z"], f"q{index}")
        names.append(node("DequantizeLinear", [integers, "s", "z"], f"d{index}"))
    if unit.slope is not None:
        constants["w"] = np.rint(unit.slope / 0.02).clip(-128, 127).astype(np.int8)
        constants |= {"ws": np.float32(0.02), "wz": np.int8(0)}
        names.append(node("DequantizeLinear", ["w", "ws", "wz"], "slope"))
    last = "y" if unit.output != "real" else "t"
    nodes.append(helper.make_node(unit.op, names, [last], name="unit", **unit.attributes))
    if unit.output == "real":
        node("DequantizeLinear", [node("QuantizeLinear", ["t", "s", "z"], "r"), "s", "z"], "y")
    inputs = {f"x{index}": list(shape) for index, shape in enumerate(unit.shapes)}
    kinds = {"int64": TensorProto.INT64, "bool": TensorProto.BOOL}
    types = {"y": kinds[unit.output]} if unit.output in kinds else None
    return make_model(nodes, inputs, ["y"], constants, output_types=types)


def _inputs(unit: Unit) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(4)
    shapes = enumerate(unit.shapes)
    return {f"x{i}": generator.standard_normal(s).astype(np.float32) for i, s in shapes}


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, player_library: Path, simulator_dir: Path
) -> tuple[Path, Mapping[str, tuple[str, ...]]]:
    """Answers of the simulator at the least levels, and what each unit became."""
    folder, lowered = tmp_path_factory.mktemp("units"), {}
    for name, unit in UNITS.items():
        path = folder / f"{name}.onnx"
        onnx.save(_model(unit), path)
        backend = NnapiBackend()
        split = partition(normalise(import_onnx(path).graph), backend, unit.level)
        (region,) = split.regions
        lowered[name] = tuple(op for part in region.units for op in part.operations)
        encoding = backend.encode(split.regions, unit.level)
        write_subgraph(folder, name, encoding, region, _inputs(unit))
    play(folder, player_library, simulator_dir)
    return folder, lowered


@pytest.mark.parametrize("name", UNITS)
def test_is_computed_on_integers(
    name: str, played: tuple[Path, Mapping[str, tuple[str, ...]]]
) -> None:
    unit, steps = UNITS[name], played[1][name]
    inner = [op for op in steps if op not in ("QUANTIZE", "DEQUANTIZE")]
    assert set(unit.operations) <= set(inner)
    assert steps.count("QUANTIZE") == len(unit.shapes)  # the result's is the operation itself
    assert steps.count("DEQUANTIZE") == (unit.output == "real")


@pytest.mark.parametrize("name", UNITS)
def test_simulator_agrees_with_onnx_runtime_within_one_step(
    name: str, played: tuple[Path, Mapping[str, tuple[str, ...]]]
) -> None:
    unit = UNITS[name]
    session = onnxruntime.InferenceSession(_model(unit).SerializeToString())
    (expected,) = session.run(None, _inputs(unit))
    (got,) = answers(played[0], name)
    assert got.shape == expected.shape
    within = STEPS * SCALE if unit.output == "real" else 0
    assert np.abs(got.astype(np.float64) - expected.astype(np.float64)).max() <= within
