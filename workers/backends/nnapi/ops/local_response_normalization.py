"""LOCAL_RESPONSE_NORMALIZATION: what the importer writes out with a band of equal weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, Site


class LocalResponseNormalization(Operation):
    """Over as many channels before as behind; other bands stay the convolution they are."""

    name = "LOCAL_RESPONSE_NORMALIZATION"

    def patterns(self) -> Iterator[Pattern]:
        data, weight, bias, exponent = (wildcard() for _ in range(4))
        squares = is_op("relax.multiply")(data, data)
        conv = is_op("relax.nn.conv2d")(squares, weight)
        biased = is_op("relax.add")(conv, bias)
        power = is_op("relax.power")(biased, exponent)
        root = is_op("relax.divide")(data, power)
        inner = {"squares": squares, "conv": conv, "add": biased, "power": power}
        parts = {"data": data, "weight": weight, "bias": bias, "exponent": exponent}
        yield Pattern(root, {**parts, **inner})

    def fits(self, site: Site) -> bool:
        band, attrs = site.constant("weight"), site["conv"].attrs
        if band is None or band.shape[:2] != (1, 1) or attrs.data_layout != "NHWC":
            return False
        is_plain = int(attrs.groups) == 1 and {int(s) for s in attrs.strides} == {1}
        return (
            is_plain
            and all(_number(site, p) is not None for p in ("bias", "exponent"))
            and (_radius(site) is not None)
        )

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        source, radius, band = builder.operand(site["data"]), _radius(site), site.constant("weight")
        bias, beta = _number(site, "bias"), _number(site, "exponent")
        assert radius is not None  # it fits
        assert band is not None
        assert bias is not None
        assert beta is not None
        builder.add(
            self.name,
            builder.output(site.output),
            input=source,
            radius=builder.int32(radius),
            bias=builder.real(bias, source),
            alpha=builder.real(float(band.max()), source),
            beta=builder.real(beta, source),
        )


def _number(site: Site, part: str) -> float | None:
    """The one value all elements of a constant have."""
    array = site.constant(part)
    if array is None or not array.size or (array != array.flat[0]).any():
        return None
    return float(array.flat[0])


def _radius(site: Site) -> int | None:
    """How far a band of equal weights reaches to both sides; None where it is no such band."""
    array = site.constant("weight")
    if array is None or array.shape[2] != array.shape[3]:
        return None
    band = array[0, 0]
    positions = np.arange(len(band))
    distance = np.abs(positions[:, None] - positions[None, :])
    value = band[0, 0]
    if not value > 0 or not np.isin(band, (0, value)).all():
        return None
    radius = int(distance[band != 0].max())
    return radius if np.array_equal(band != 0, distance <= radius) else None


OPERATIONS = (LocalResponseNormalization(),)
