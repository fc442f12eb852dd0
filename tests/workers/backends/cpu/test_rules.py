"""Every schedule rule against ONNX Runtime over drawn shapes, for two vector widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tests.workers.backends.cpu.models import Array, network, single_node

Check = Callable[..., tuple[str, ...]]

drawn = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
batches = st.sampled_from([1, 3])
kernels = st.tuples(st.integers(1, 7), st.integers(1, 7))


def values(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def conv(
    image: tuple[int, int, int, int], weight: Array, step: int, dilation: int, groups: int = 1
) -> onnx.ModelProto:
    pads = [dilation * (k // 2) for k in weight.shape[2:]]
    return single_node(
        "Conv", image, weight, values(weight.shape[0]),
        strides=[step, step], dilations=[dilation] * 2, pads=pads * 2, group=groups,
    )  # fmt: skip


@drawn
@given(
    batches, st.integers(1, 40), st.integers(1, 70), kernels, st.integers(1, 2), st.integers(1, 2),
    st.integers(7, 19),
)  # fmt: skip
def test_convolution(
    check: Check, batch: int, inputs: int, outputs: int, kernel: tuple[int, int],
    step: int, dilation: int, width: int,
) -> None:  # fmt: skip
    image = (batch, inputs, width + 6, width + 7)
    assert check(conv(image, values(outputs, inputs, *kernel), step, dilation)) == ()


@drawn
@given(
    batches, st.sampled_from([32, 36, 40, 48]), st.integers(8, 24).map(lambda n: 4 * n),
    st.integers(4, 23), st.integers(3, 19), st.integers(0, 1), st.booleans(),
)  # fmt: skip
@example(1, 48, 64, 24, 24, 1, True)
@example(1, 64, 64, 2, 2, 1, True)
def test_convolution_in_fewer_products(
    check: Check, batch: int, inputs: int, outputs: int, height: int, width: int, pad: int,
    is_residual: bool,
) -> None:  # fmt: skip
    """3 x 3 of stride one: both sizes of Winograd's tiles, images that no tile divides."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[pad] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Add", ["r", "c" if is_residual else "b2"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(values(outputs, inputs, 3, 3), "w"),
        numpy_helper.from_array(values(outputs), "b"),
        numpy_helper.from_array(values(outputs, 1, 1), "b2"),
    ]
    assert check(network(nodes, {"x": (batch, inputs, height, width)}, constants), 5e-5) == ()


@drawn
@given(batches, st.integers(1, 50), kernels, st.integers(1, 2), st.integers(1, 2))
def test_depthwise(
    check: Check, batch: int, channels: int, kernel: tuple[int, int], step: int, dilation: int
) -> None:
    image = (batch, channels, 17, 14)
    assert check(conv(image, values(channels, 1, *kernel), step, dilation, channels)) == ()


@pytest.mark.parametrize("dilation", [4, 8, 9, 12])
@pytest.mark.parametrize("step", [1, 2])
def test_a_window_wider_than_the_image(check: Check, dilation: int, step: int) -> None:
    """Rows of the window that see only the border are dropped; some see one row of the image."""
    assert check(conv((1, 5, 9, 10), values(18, 5, 3, 3), step, dilation)) == ()


@drawn
@given(batches, st.integers(2, 13), st.integers(1, 20), st.sampled_from([1, 3, 8, 16, 48]))
def test_grouped(check: Check, batch: int, groups: int, inputs: int, outputs: int) -> None:
    weight = values(groups * outputs, inputs, 3, 3)
    assert check(conv((batch, groups * inputs, 9, 11), weight, 1, 1, groups)) == ()


@drawn
@given(
    batches, st.sampled_from([1, 2, 7]), st.integers(1, 9), st.integers(1, 20), kernels,
    st.integers(1, 3), st.integers(0, 2), st.integers(0, 1),
)  # fmt: skip
@example(1, 1, 16, 16, (2, 2), 2, 0, 0)
def test_transposed_convolution(
    check: Check, batch: int, groups: int, inputs: int, outputs: int, kernel: tuple[int, int],
    step: int, cut: int, more: int,
) -> None:  # fmt: skip
    model = single_node(
        "ConvTranspose", (batch, groups * inputs, 6, 9), values(groups * inputs, outputs, *kernel),
        values(groups * outputs), strides=[step] * 2, pads=[min(cut, k // 2) for k in kernel] * 2,
        output_padding=[min(more, step - 1)] * 2, group=groups,
    )  # fmt: skip
    assert check(model) == ()


@drawn
@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 150))
def test_dense_matmul(check: Check, rows: int, depth: int, columns: int) -> None:
    model = single_node("MatMul", (2, rows, depth), values(depth, columns))
    assert check(model) == ()


@drawn
@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 70))
def test_batched_matmul(check: Check, rows: int, depth: int, columns: int) -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    model = network([node], {"a": (3, rows, depth), "b": (3, depth, columns)})
    assert check(model) == ()


@drawn
@given(
    st.sampled_from(["MaxPool", "AveragePool"]), batches, st.integers(1, 40), st.integers(2, 4),
    st.integers(1, 3),
)  # fmt: skip
def test_pooling(check: Check, op: str, batch: int, channels: int, kernel: int, step: int) -> None:
    pad = kernel // 2
    model = single_node(
        op, (batch, channels, 17, 13),
        kernel_shape=[kernel] * 2, strides=[step] * 2, pads=[pad] * 4,
    )  # fmt: skip
    check(model)


@drawn
@given(st.sampled_from(["ReduceMean", "ReduceMax"]), batches, st.integers(1, 40))
def test_reduction(check: Check, op: str, batch: int, channels: int) -> None:
    check(single_node(op, (batch, channels, 7, 9), axes=[2, 3], keepdims=1))


@drawn
@given(st.integers(1, 30), st.integers(1, 130))
@example(256, 384)
def test_softmax(check: Check, rows: int, columns: int) -> None:
    assert check(single_node("Softmax", (2, rows, columns), axis=-1)) == ()


@drawn
@given(st.integers(1, 30), st.integers(2, 130))
@example(256, 384)
def test_layer_norm(check: Check, rows: int, width: int) -> None:
    model = single_node(
        "LayerNormalization", (2, rows, width), values(width), values(width), axis=-1
    )
    assert check(model) == ()


@drawn
@given(
    st.sampled_from(["Relu", "Sigmoid", "Tanh", "Exp", "Erf", "HardSwish", "Abs"]),
    st.lists(st.integers(1, 33), min_size=1, max_size=4),
)
def test_elementwise(check: Check, op: str, shape: list[int]) -> None:
    assert check(single_node(op, shape)) == ()


@drawn
@given(st.permutations(range(4)), st.integers(1, 20), st.integers(1, 20))
def test_transpose(check: Check, order: list[int], height: int, width: int) -> None:
    assert check(single_node("Transpose", (2, height, width, 5), perm=order)) == ()


@drawn
@given(st.integers(1, 20), st.integers(1, 3))
def test_concat(check: Check, size: int, axis: int) -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=axis)
    assert check(network([node], {"x": (1, size, 6, 7)})) == ()


@drawn
@given(st.lists(st.sampled_from([4, 8, 12, 16, 20, 48]), min_size=2, max_size=9), batches)
def test_concat_of_channels(check: Check, widths: list[int], batch: int) -> None:
    """Element-wise functions before and behind it become one pass with it."""
    inputs = {f"x{i}": (batch, width, 5, 6) for i, width in enumerate(widths)}
    nodes = [
        helper.make_node("MaxPool", [name], [f"p{name}"], kernel_shape=[2, 2]) for name in inputs
    ]
    nodes.append(helper.make_node("Concat", [f"p{name}" for name in inputs], ["c"], axis=1))
    nodes.append(helper.make_node("Relu", ["c"], ["r"]))
    nodes.append(helper.make_node("Conv", ["r", "w"], ["y"]))
    constants = [numpy_helper.from_array(values(8, sum(widths), 1, 1), "w")]
    assert check(network(nodes, inputs, constants)) == ()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("channels", "scale"), [(24, 2.0), (21, 1.5), (58, 0.6)])
def test_resize(check: Check, mode: str, channels: int, scale: float) -> None:
    scales = numpy_helper.from_array(np.array([1, 1, scale, 2], np.float32), "scales")
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["r"], mode=mode),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    assert check(network(nodes, {"x": (2, channels, 7, 9)}, [scales])) == ()


@pytest.mark.parametrize("channels", [16, 12])
def test_a_decoder_joins_what_it_upsampled(check: Check, channels: int) -> None:
    """U-Net: what is put into NCHW and back, and is smaller than the concat it goes into."""
    nodes = [
        helper.make_node("ConvTranspose", ["x", "u", "b"], ["up"], strides=[2, 2]),
        helper.make_node("Relu", ["side"], ["r"]),
        helper.make_node("Concat", ["up", "r"], ["j"], axis=1),
        helper.make_node("Conv", ["j", "w"], ["y"]),
    ]
    constants = {
        "u": values(8, channels, 2, 2), "b": values(channels), "w": values(8, channels + 16, 1, 1)
    }  # fmt: skip
    arrays = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    inputs = {"x": (2, 8, 5, 6), "side": (2, 16, 10, 12)}
    assert check(network(nodes, inputs, arrays)) == ()


@pytest.mark.timeout(60)
def test_a_long_chain_of_functions(check: Check) -> None:
    """One kernel of all would take LLVM hours."""
    ops = ["Sigmoid", "Tanh", "Neg", "Erf"] * 3
    names = ["x", *(f"t{i}" for i in range(len(ops) - 1)), "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(ops)]
    assert check(network(nodes, {"x": (2, 48)})) == ()


@pytest.mark.parametrize("shape", [(3, 5, 28, 28), (3, 5, 7, 3), (2, 33), (3, 96)])
def test_sums_along_memory(check: Check, shape: tuple[int, ...]) -> None:
    axes = list(range(2, len(shape))) or [1]
    assert check(single_node("ReduceMean", shape, axes=axes, keepdims=0)) == ()


def gated(channels: int) -> onnx.ModelProto:
    """Squeeze and excite: the gate is one pixel that is broadcast over the image."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Conv", ["pooled", "w", "b"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(values(channels, channels, 1, 1), "w"),
        numpy_helper.from_array(values(channels), "b"),
    ]
    return network(nodes, {"x": (1, channels, 56, 56)}, constants)


@pytest.mark.parametrize("channels", [3, 16, 20])
def test_a_gate_is_computed_once(check: Check, channels: int) -> None:
    assert check(gated(channels)) == ()


def test_an_epilogue_with_two_uses_of_the_sum(check: Check) -> None:
    """SiLU reads the convolution twice, and the residual reads another tensor of its shape."""
    nodes: list[Any] = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"]),
        helper.make_node("Add", ["m", "x"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(values(21, 21, 3, 3), "w"),
        numpy_helper.from_array(values(21), "b"),
    ]
    assert check(network(nodes, {"x": (1, 21, 13, 15)}, constants)) == ()


@pytest.mark.parametrize("op", ["Sinh", "Cosh"])
def test_what_has_no_vector_form_is_correct_and_named(check: Check, op: str) -> None:
    assert check(single_node(op, (4, 16))) == (op.lower(),)
