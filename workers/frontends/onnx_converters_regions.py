"""RoiAlign of ONNX: a grid of means from each region of an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, text
from workers.graph.graph import dtype_of, static_shape

_HALF_PIXEL_OPSET = 16
"""From here on pixels are squares whose middle is at a half, unless the node says otherwise."""


def _aligned(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    data, regions, batches = inputs[:3]
    if text(attrs, "mode", "avg") != "avg":
        # TVM takes the largest interpolated value, ONNX the largest weighted neighbour.
        raise ValueError("mode 'max' is not supported, 'avg' is")
    shape = static_shape(batches)
    if shape is None:
        raise ValueError("the number of regions has to be known")
    is_new = scope.opset >= _HALF_PIXEL_OPSET
    usual = "half_pixel" if is_new else "output_half_pixel"
    is_half = text(attrs, "coordinate_transformation_mode", usual) == "half_pixel"
    scale, dtype = float(attrs.get("spatial_scale", 1.0)), dtype_of(regions)
    if is_half:  # in the image's pixels, of which the regions' are multiples
        half = relax.const(np.array(0.5 / scale, dtype), dtype)
        regions = scope.emit(relax.op.subtract(regions, half))
    column = scope.emit(relax.op.reshape(batches, (shape[0], 1)))
    column = scope.emit(relax.op.astype(column, dtype))
    return relax.op.vision.roi_align(
        data,
        scope.emit(relax.op.concat([column, regions], 1)),
        pooled_size=(int(attrs.get("output_height", 1)), int(attrs.get("output_width", 1))),
        spatial_scale=scale,
        sample_ratio=int(attrs.get("sampling_ratio", 0)),
        aligned=is_half,
        layout="NCHW",
        mode="avg",
    )


CONVERTERS: Mapping[str, Converter] = {"RoiAlign": _aligned}
"""By ONNX operation name."""
