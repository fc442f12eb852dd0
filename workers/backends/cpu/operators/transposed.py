"""conv2d_transpose as a plain convolution (`workers/graph/subpixel.py`) and a copy."""

from __future__ import annotations

from tvm import relax, te, topi

from workers.backends.cpu.operators.convolution import convolution
from workers.backends.cpu.operators.packed import FUSES_EPILOGUE
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.subpixel import Phases, plain_weights


def conv2d_transpose(
    builder: relax.BlockBuilder, call: relax.Call, vectors: Vectors
) -> relax.Expr | None:
    """Lowers a transposed convolution of constant weights, in the NCHW order it arrives in."""
    attrs, weight = call.attrs, constant_value(call.args[1])
    image, output = static_shape(call.args[0]), static_shape(call)
    is_ours = attrs.data_layout == "NCHW" and attrs.kernel_layout == "IOHW"
    if not is_ours or weight is None or image is None or output is None:
        return None
    if dtype_of(call) != "float32" or any(int(step) != 1 for step in attrs.dilation):
        return None
    strides, padding = (tuple(map(int, values)) for values in (attrs.strides, attrs.padding))
    axes = [Phases.of(weight.shape[2 + i], strides[i], padding[i]) for i in (0, 1)]
    rows, columns = (axes[i].padding(image[2 + i], output[2 + i]) for i in (0, 1))
    groups = int(attrs.groups)
    plain = relax.op.nn.conv2d(
        builder.emit_te(topi.transpose, call.args[0], (0, 2, 3, 1)),
        relax.const(plain_weights(weight, groups, axes)),
        padding=(rows[0], columns[0], rows[1], columns[1]),
        groups=groups,
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    lowered = convolution(builder, builder.normalize(plain), vectors)
    if lowered is None:
        return None
    placed = builder.call_te(
        _placed,
        builder.emit(lowered),
        *(output, strides, groups),
        primfunc_name_hint="conv2d_transpose",
        primfunc_attrs=FUSES_EPILOGUE,
    )
    return builder.call_te(topi.transpose, builder.emit(placed), (0, 3, 1, 2))


def _placed(
    total: te.Tensor, output: tuple[int, ...], strides: tuple[int, int], groups: int
) -> te.Tensor:
    """The NHWC image from the convolution's, whose channels are pixels."""
    (sy, sx), (batch, channels, height, width) = strides, output
    per_group = channels // groups

    def pixel(n: te.Var, y: te.Var, x: te.Var, c: te.Var) -> te.PrimExpr:
        kind = (c // per_group * sy + y % sy) * sx + x % sx
        return total[n, y // sy, x // sx, kind * per_group + c % per_group]

    shape = (batch, height, width, channels)
    return te.compute(shape, pixel, name="conv2d_transpose_place")
