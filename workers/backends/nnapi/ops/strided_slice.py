"""STRIDED_SLICE: slices with constant bounds; splits have become slices before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.model import ModelBuilder
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    QuantizedForm,
    Site,
    check_tensors,
    unsupported,
)


def _ints(expr: relax.Expr) -> list[int] | None:
    if not isinstance(expr, relax.Tuple):
        return None
    values = [getattr(field, "value", None) for field in expr.fields]
    return [int(v) for v in values if v is not None] if None not in values else None


class StridedSlice(Operation):
    """Bounds are written out for every axis, so that no mask is needed."""

    name = "STRIDED_SLICE"
    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        for count in (4, 3):  # strides may be left out
            data, bounds = wildcard(), [wildcard() for _ in range(count)]
            root = is_op("relax.strided_slice")(data, *bounds)
            yield Pattern(root, {"data": data, "slice": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        bounds = [_ints(arg) for arg in site["slice"].args[1:]]
        if any(b is None for b in bounds):
            return unsupported("dynamic_bounds", "STRIDED_SLICE needs constant bounds.")
        if any(stride < 1 for stride in (bounds[3:] or [[]])[0] or ()):
            return unsupported("stride", "A slice with a negative stride is not emitted.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        shape = site.shape("data")
        begins, ends, strides = self._whole(site, shape)
        zero = builder.int32(0)
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            begins=builder.int32s(begins),
            ends=builder.int32s(ends),
            strides=builder.int32s(strides),
            begin_mask=zero,
            end_mask=zero,
            shrink_axis_mask=zero,
        )

    @staticmethod
    def _whole(site: Site, shape: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        begins, ends, strides = [0] * len(shape), list(shape), [1] * len(shape)
        axes, first, last, *steps = (_ints(arg) or [] for arg in site["slice"].args[1:])
        step = steps[0] if steps else [1] * len(axes)
        for axis, begin, end, stride in zip(axes, first, last, step, strict=True):
            size = shape[axis]
            begins[axis] = min(max(begin + size if begin < 0 else begin, 0), size)
            ends[axis] = min(max(end + size if end < 0 else end, 0), size)
            strides[axis] = stride
        return begins, ends, strides


OPERATIONS = (StridedSlice(),)
