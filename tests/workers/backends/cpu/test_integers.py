"""Quantized operators in integer arithmetic, within one step of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.models import Array, feeds_of, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest

drawn = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
activations = st.sampled_from([(np.uint8, 120), (np.int8, -3)])
STEP = 0.1
"""Scale of the output."""


def quantized(
    op: str, shape: tuple[int, ...], weight: Array, bias: Array | None,
    kind: tuple[type[np.generic], int], axis: int, **attributes: object,
) -> onnx.ModelProto:  # fmt: skip
    """x -> quantize -> dequantize -> op(dequantized weights) -> quantize -> dequantize -> y."""
    dtype, zero = kind
    channels = weight.shape[axis]
    constants = {
        "xs": np.float32(0.03), "xz": dtype(zero), "ys": np.float32(STEP), "yz": dtype(zero),
        "w": weight, "ws": np.linspace(0.004, 0.01, channels, dtype=np.float32),
        "wz": np.zeros(channels, np.int8),
    }  # fmt: skip
    if bias is not None:
        constants["b"] = bias
    operands = ["xr", "wr"] if bias is None else ["xr", "wr", "b"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=axis),
        helper.make_node(op, operands, ["t"], **attributes),
        helper.make_node("QuantizeLinear", ["t", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def bytes_of(*shape: int) -> Array:
    return np.random.default_rng(2).integers(-127, 128, shape, np.int8)


def check(
    model: onnx.ModelProto, folder: Path, target: tvm.target.Target, has_depth: bool = True
) -> None:
    """Compiles, compares, and looks for the integer sum, in dot products if it has a depth."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    feeds = feeds_of(model)
    lowered, uncovered = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
    assert uncovered == ()
    kernels = [f for f in lowered.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    (integer_sum,) = (k.script() for k in kernels if '"int32", scope="local"' in k.script())
    assert ("call_llvm_pure_intrin" in integer_sum) == has_depth
    machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
    ours = machine["main"](*[tvm.runtime.tensor(a) for a in feeds.values()]).numpy()
    expected = reference(path, feeds)
    steps = np.abs(np.rint((ours - expected) / STEP))
    assert steps.max() <= 1
    if expected.size > 100:
        assert np.unique(np.rint(expected / STEP)).size > 3  # not saturated
        assert np.mean(steps > 0) < 0.02


@drawn
@given(
    st.sampled_from([1, 3]), st.integers(1, 40), st.integers(1, 70), st.integers(1, 5),
    st.integers(1, 2), activations,
)  # fmt: skip
def test_convolution(
    target: tvm.target.Target, tmp_path: Path, batch: int, inputs: int, outputs: int, kernel: int,
    step: int, kind: tuple[type[np.generic], int],
) -> None:  # fmt: skip
    model = quantized(
        "Conv", (batch, inputs, 11, 13), bytes_of(outputs, inputs, kernel, kernel),
        np.linspace(-1, 1, outputs, dtype=np.float32), kind, 0,
        pads=[kernel // 2] * 4, strides=[step] * 2,
    )  # fmt: skip
    check(model, tmp_path, target)


@drawn
@given(st.integers(2, 40), activations)
def test_depthwise(
    target: tvm.target.Target, tmp_path: Path, channels: int, kind: tuple[type[np.generic], int]
) -> None:
    model = quantized(
        "Conv", (1, channels, 11, 13), bytes_of(channels, 1, 3, 3), None, kind, 0,
        pads=[1] * 4, group=channels,
    )  # fmt: skip
    check(model, tmp_path, target, has_depth=False)


@drawn
@given(st.integers(2, 3), st.integers(2, 9), st.sampled_from([16, 32]), activations)
def test_grouped(
    target: tvm.target.Target, tmp_path: Path, groups: int, depth: int, outputs: int,
    kind: tuple[type[np.generic], int],
) -> None:  # fmt: skip
    model = quantized(
        "Conv", (1, groups * depth, 9, 11), bytes_of(groups * outputs, depth, 3, 3), None, kind, 0,
        pads=[1] * 4, group=groups,
    )  # fmt: skip
    check(model, tmp_path, target, has_depth=depth % 2 == 0)


@drawn
@given(st.integers(1, 20), st.integers(1, 90), st.integers(2, 90), activations)
def test_matmul(
    target: tvm.target.Target, tmp_path: Path, rows: int, depth: int, columns: int,
    kind: tuple[type[np.generic], int],
) -> None:  # fmt: skip
    model = quantized("MatMul", (rows, depth), bytes_of(depth, columns), None, kind, 1)
    check(model, tmp_path, target)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_constant_is_not_dequantized_at_run_time(
    tmp_path: Path, target: tvm.target.Target, dtype: str
) -> None:
    constants = [
        numpy_helper.from_array(np.arange(20, dtype=dtype), "c"),
        numpy_helper.from_array(np.float32(0.5), "s"),
        numpy_helper.from_array(np.asarray(3, dtype), "z"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["r"]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (20,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (20,))],
        constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    lowered, _ = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
    names = [variable.name_hint for variable in lowered.functions]
    assert not any("dequantize" in name for name in names)
    feeds = feeds_of(model)
    machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
    ours = machine["main"](tvm.runtime.tensor(feeds["x"])).numpy()
    np.testing.assert_allclose(ours, reference(path, feeds), rtol=0, atol=1e-6)
