"""ROI_ALIGN: relax.vision.roi_align, whose regions have their image's number in front."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm.relax.dpl import TuplePattern, is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.backends.nnapi.slicing import add_slice


class RoiAlign(Operation):
    """Means of interpolated samples; regions of less than a pixel count as one pixel."""

    name = "ROI_ALIGN"

    def patterns(self) -> Iterator[Pattern]:
        data, images, corners = wildcard(), wildcard(), wildcard()
        regions = is_op("relax.concat")(TuplePattern([images, corners]))
        root = is_op("relax.vision.roi_align")(data, regions)
        parts = {"data": data, "images": images, "corners": corners, "regions": regions}
        yield Pattern(root, {**parts, "align": root})
        regions = wildcard()
        root = is_op("relax.vision.roi_align")(data, regions)
        yield Pattern(root, {"data": data, "regions": regions, "align": root})

    def fits(self, site: Site) -> bool:
        if "corners" not in site:
            return True
        images = site.constant("images")  # computed ones are cut out of the regions
        is_beside = int(site["regions"].attrs.axis or 0) % 2 == 1
        return is_beside and images is not None and images.shape[1:] == (1,)

    def check(self, site: Site) -> Rejection | None:
        regions = "corners" if "corners" in site else "regions"
        rejection = check_tensors(site, self.name, [site["data"], site[regions]])
        if rejection is not None:
            return rejection
        attrs = site["align"].attrs
        if attrs.layout != "NHWC" or attrs.mode != "avg":
            return unsupported("layout", "ROI_ALIGN gives means of an image in NHWC.")
        if site.numbers.half:
            return unsupported("operands", "ROI_ALIGN in float16 would find other pixels.")
        if attrs.aligned and not _are_large(site):
            return unsupported("operands", "ROI_ALIGN counts regions of less than a pixel as one.")
        # The number of samples jumps where a region's size rounds to another side.
        is_exact = math.frexp(float(attrs.spatial_scale))[0] == 0.5
        if attrs.sample_ratio <= 0 and not is_exact:
            return unsupported("operands", "ROI_ALIGN divides by the scale; samples may differ.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        attrs = site["align"].attrs
        data, output = builder.operand(site["data"]), builder.output(site.output)
        corners, images = self._regions(site, builder)
        height, width = (int(size) for size in attrs.pooled_size)
        ratio = builder.real(1 / float(attrs.spatial_scale), data)
        samples = builder.int32(max(int(attrs.sample_ratio), 0))
        builder.add(
            self.name, output,
            input=data, regions=corners, batches=images,
            height=builder.int32(height), width=builder.int32(width),
            height_ratio=ratio, width_ratio=ratio,
            height_samples=samples, width_samples=samples,
            nchw=builder.bool(False),
        )  # fmt: skip

    def _regions(self, site: Site, builder: ModelBuilder) -> tuple[int, int]:
        """Corners [regions, 4], and the numbers of their images."""
        if "corners" in site:
            images = site.constant("images")
            assert images is not None  # it fits
            return builder.operand(site["corners"]), builder.constant(_integers(images))
        known = site.constant("regions")
        if known is not None:
            corners = builder.constant(np.ascontiguousarray(known[:, 1:]))
            return corners, builder.constant(_integers(known[:, 0]))
        whole, count = builder.operand(site["regions"]), site.shape("regions")[0]
        column, corners = (builder.like(whole, (count, size)) for size in (1, 4))
        add_slice(builder, whole, column, {1: slice(0, 1, 1)})
        add_slice(builder, whole, corners, {1: slice(1, 5, 1)})
        numbers = builder.temporary((count,), "int32")
        builder.add("CAST", numbers, input=builder.reshape(column, (count,)))
        return corners, numbers


def _are_large(site: Site) -> bool:
    """Whether all regions are known and none is smaller than a pixel."""
    regions = site.constant("regions")
    if regions is None:
        return False
    corners = regions.astype(np.float32)
    sides = (corners[:, 3:] - corners[:, 1:3]) * float(site["align"].attrs.spatial_scale)
    return bool((sides >= 1).all())


def _integers(images: NDArray[Any]) -> NDArray[np.int32]:
    return images.reshape(-1).astype(np.int32)


OPERATIONS = (RoiAlign(),)
