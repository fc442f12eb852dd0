"""Convolutions, fully connected layers and matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.quantization import Quantization

SAME = 0
"""Padding: the output has as many steps as the input has strides."""

OHWI_TO_HWIO = (1, 2, 3, 0)


def window_padding(
    padding: int, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int]
) -> tuple[int, int, int, int]:
    """Top, left, bottom, right of a window with TFLite's padding scheme."""
    if padding != SAME:
        return (0, 0, 0, 0)
    totals = [
        max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(size, kernel, stride, strict=True)
    ]
    before = [total // 2 for total in totals]
    after = [total - total // 2 for total in totals]
    return (before[0], before[1], after[0], after[1])


def _with_bias(op: Emitter, value: relax.Expr, bias: int, data: int = 0) -> relax.Expr:
    """Add the bias; the scale of an integer bias is input scale times weight scale."""
    if not op.has(bias):
        return value
    inputs, weight = op.tensor(data).quantization, op.tensor(1).quantization
    if not op.computes_integers or inputs is None or weight is None:
        return op.emit(relax.op.add(op.emit(value), op.real(bias)))
    scales = tuple(float(np.float32(inputs.scale) * np.float32(scale)) for scale in weight.scales)
    axis = 0 if len(scales) > 1 else None
    numbers = Quantization("int32", scales, (0,) * len(scales), axis)
    return op.emit(relax.op.add(op.emit(value), op.dequantized(op.raw(bias), numbers)))


def _conv2d(op: Emitter) -> None:
    _convolve(op, OHWI_TO_HWIO, depthwise=False)


def _depthwise_conv2d(op: Emitter) -> None:
    # [1, height, width, channels * multiplier]
    _convolve(op, (1, 2, 0, 3), depthwise=True)


def _convolve(op: Emitter, to_hwio: tuple[int, ...], depthwise: bool) -> None:
    data = op.real(0)
    shape = op.shape_of(data)
    weight = op.real(1, to_hwio)
    kernel = [op.shape(1)[axis] for axis in to_hwio]
    groups = shape[3] if depthwise else shape[3] // max(kernel[2], 1)
    strides = (op.option("strideH", 1), op.option("strideW", 1))
    dilation = (op.option("dilationHFactor", 1), op.option("dilationWFactor", 1))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel[:2], dilation, strict=True)]
    result = relax.op.nn.conv2d(
        data,
        weight,
        strides=strides,
        padding=window_padding(op.option("padding", SAME), shape[1:3], reach, strides),
        dilation=dilation,
        groups=groups,
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_layout="NHWC",
    )
    op.give(op.activated(_with_bias(op, result, 2)))


def _conv3d(op: Emitter) -> None:
    """Over depth, height and width; the weights are [depth, height, width, in, out]."""
    axes = ("D", "H", "W")
    size, kernel = op.shape(0)[1:4], op.shape(1)[:3]
    strides = [int(op.option(f"stride{axis}", 1)) for axis in axes]
    dilation = [int(op.option(f"dilation{axis}Factor", 1)) for axis in axes]
    before, after = [], []
    for n, k, s, d in zip(size, kernel, strides, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        total = total if op.option("padding", SAME) == SAME else 0
        before.append(total // 2)
        after.append(total - total // 2)
    result = relax.op.nn.conv3d(
        op.real(0),
        op.real(1),
        strides=strides,
        padding=[*before, *after],
        dilation=dilation,
        data_layout="NDHWC",
        kernel_layout="DHWIO",
        out_layout="NDHWC",
    )
    op.give(op.activated(_with_bias(op, result, 2)))


def _transpose_conv(op: Emitter) -> None:
    """Inputs: output shape, weights [out, height, width, in], data, bias.

    In NCHW between two changes of layout, the one form TVM builds for the CPU.
    """
    data = op.real(2)
    size, wanted = op.shape_of(data), op.integers(0)
    weight = op.real(1, (3, 0, 1, 2))
    kernel = op.shape(1)[1:3]
    strides = (op.option("strideH", 1), op.option("strideW", 1))
    padding = window_padding(op.option("padding", SAME), wanted[1:3], kernel, strides)
    # What the scheme leaves open at the far side.
    extra = [
        wanted[1 + i] - ((size[1 + i] - 1) * strides[i] + kernel[i] - padding[i] - padding[2 + i])
        for i in range(2)
    ]
    if any(not 0 <= e < s for e, s in zip(extra, strides, strict=True)):
        raise op.unsupported(f"asks for the output shape {wanted}, which its strides do not give")
    result = relax.op.nn.conv2d_transpose(
        op.emit(relax.op.permute_dims(data, (0, 3, 1, 2))),
        weight,
        strides=strides,
        padding=padding,
        output_padding=(extra[0], extra[1]),
    )
    result = op.emit(relax.op.permute_dims(op.emit(result), (0, 2, 3, 1)))
    op.give(op.activated(_with_bias(op, result, 3, 2)))


def _fully_connected(op: Emitter) -> None:
    if op.option("weightsFormat", 0) != 0:
        raise op.unsupported("has shuffled weights")
    weight = op.real(1, (1, 0))
    features = op.shape(1)[1]
    data = op.real(0)
    shape = op.shape_of(data)
    if len(shape) != 2 or shape[1] != features:
        data = op.emit(relax.op.reshape(data, (int(np.prod(shape)) // features, features)))
    result = op.activated(_with_bias(op, relax.op.matmul(data, weight), 2))
    if op.option("keepNumDims", False) and len(shape) != 2:
        result = op.emit(relax.op.reshape(result, (*shape[:-1], op.shape(1)[0])))
    op.give(result)


def _batch_matmul(op: Emitter) -> None:
    operands = []
    for position, option in ((0, "adjX"), (1, "adjY")):
        rank = len(op.shape(position))
        swapped = (*range(rank - 2), rank - 1, rank - 2)
        if op.option(option, False) and op.constant(position) is not None:
            operands.append(op.real(position, swapped))
        elif op.option(option, False):
            operands.append(op.emit(relax.op.permute_dims(op.real(position), swapped)))
        else:
            operands.append(op.real(position))
    op.give(relax.op.matmul(*operands))


CONVERTERS: Mapping[str, Converter] = {
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _conv2d,
    "CONV_3D": _conv3d,
    "DEPTHWISE_CONV_2D": _depthwise_conv2d,
    "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _transpose_conv,
}
"""By TFLite operator name."""
