"""resize2d as a kernel of its own, in the layout the graph has it in.

Fused with the transpose behind it, it would look for every element of an image in NCHW, not for
every pixel in NHWC.
"""

from __future__ import annotations

from tvm import relax, topi

from workers.backends.cpu.operators.packed import FUSES_EPILOGUE
from workers.graph.graph import static_shape


def resize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    """Lowers a resize in NHWC."""
    attrs, shape = call.attrs, static_shape(call)
    if shape is None or attrs.layout != "NHWC":
        return None
    return builder.call_te(
        topi.image.resize2d,
        call.args[0],
        roi=attrs.roi,
        size=shape[1:3],
        layout=attrs.layout,
        method=attrs.method,
        coordinate_transformation_mode=attrs.coordinate_transformation_mode,
        rounding_method=attrs.rounding_method,
        bicubic_alpha=attrs.cubic_alpha,
        bicubic_exclude=attrs.cubic_exclude,
        extrapolation_value=attrs.extrapolation_value,
        primfunc_name_hint="resize2d",
        primfunc_attrs=FUSES_EPILOGUE,
    )
