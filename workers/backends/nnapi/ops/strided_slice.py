"""STRIDED_SLICE with constant bounds, backwards too; splits have become slices before."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.backends.nnapi.slicing import add_slice


def _ints(expr: relax.Expr) -> list[int] | None:
    if not isinstance(expr, relax.Tuple):
        return None
    values = [getattr(field, "value", None) for field in expr.fields]
    return [int(v) for v in values if v is not None] if None not in values else None


class StridedSlice(Operation):
    """relax.strided_slice; bounds are written out for every axis, so that no mask is needed."""

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
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        axes, first, last, *steps = (_ints(arg) or [] for arg in site["slice"].args[1:])
        strides = steps[0] if steps else [1] * len(axes)
        source, output = builder.operand(site["data"]), builder.output(site.output)
        bounds = zip(axes, first, last, strides, strict=True)
        add_slice(builder, source, output, {a: slice(b, e, s) for a, b, e, s in bounds})


OPERATIONS = (StridedSlice(),)
