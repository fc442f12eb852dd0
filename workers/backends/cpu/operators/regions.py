"""Means of samples in regions of an NHWC image (ROI align)."""

from __future__ import annotations

from typing import Any

from tvm import relax, te, tirx

from workers.graph.graph import static_shape

Value = Any
"""A TIR expression; TVM has no types."""


def roi_align(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    """Without samples where a region has no size, in which TVM's own leaves what it finds."""
    attrs, shape = call.attrs, static_shape(call)
    if attrs.layout != "NHWC" or attrs.mode != "avg" or shape is None:
        return None

    def compute(image: te.Tensor, regions: te.Tensor) -> te.Tensor:
        def mean(region: Value, row: Value, column: Value, channel: Value) -> Value:
            down = _Line(attrs, regions, region, 0, row)
            along = _Line(attrs, regions, region, 1, column)
            i, j = down.samples("i"), along.samples("j")
            number = regions[region, 0].astype("int32")
            sample = _interpolated(image, number, down.at(i), along.at(j), channel)
            return te.sum(sample * down.weight * along.weight, axis=[i, j])

        return te.compute(shape, mean, name="roi_align")

    return builder.call_te(compute, *call.args[:2], primfunc_name_hint="roi_align")


class _Line:
    """The samples of one cell of a region's grid along an axis."""

    def __init__(
        self, attrs: Any, regions: te.Tensor, region: Value, axis: int, cell: Value
    ) -> None:
        scale, cells = float(attrs.spatial_scale), int(attrs.pooled_size[axis])
        low, high = (regions[region, place - axis] * scale for place in (2, 4))
        size = high - low
        if not attrs.aligned:
            size = te.max(size, 1.0)
        self._size = size / float(cells)
        self._start = low + cell.astype("float32") * self._size
        fixed = int(attrs.sample_ratio)
        self._count = (
            tirx.const(fixed, "int32") if fixed > 0 else te.ceil(self._size).astype("int32")
        )

    def samples(self, name: str) -> te.IterVar:
        """One at least: a sum of nothing would not be written."""
        return te.reduce_axis((0, te.max(self._count, 1)), name)

    @property
    def weight(self) -> Value:
        """Of a sample."""
        one, count = tirx.const(1.0, "float32"), self._count.astype("float32")
        return tirx.Select(self._count > 0, one / te.max(count, 1.0), tirx.const(0.0, "float32"))

    def at(self, sample: Value) -> Value:
        """Where a sample is, in pixels."""
        part = (sample.astype("float32") + 0.5) / te.max(self._count, 1).astype("float32")
        return self._start + self._size * part


def _interpolated(image: te.Tensor, number: Value, y: Value, x: Value, channel: Value) -> Value:
    """Of four pixels; more than a pixel outside of the image it is 0."""
    height, width = (int(size) for size in image.shape[1:3])
    outside = tirx.any(y < -1.0, x < -1.0, y > float(height), x > float(width))
    (top, bottom, down), (left, right, along) = (
        _neighbours(place, size) for place, size in ((y, height), (x, width))
    )
    upper, lower = (
        image[number, row, left, channel] * (1.0 - along)
        + image[number, row, right, channel] * along
        for row in (top, bottom)
    )
    zero = tirx.const(0.0, "float32")
    return tirx.Select(outside, zero, upper * (1.0 - down) + lower * down)


def _neighbours(place: Value, size: int) -> tuple[Value, Value, Value]:
    """The pixel before, the one behind, and how far it is from the first to the place."""
    inside = te.min(te.max(place, 0.0), float(size - 1))
    before = inside.astype("int32")
    return before, te.min(before + 1, size - 1), inside - before.astype("float32")
