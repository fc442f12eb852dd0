"""RESHAPE, TRANSPOSE, RESHAPE through tensors of rank 5 and 6, which NNAPI does not have.

Axes that stay neighbours are one axis to a transpose, and two transposes can do what one cannot:
channel shuffle, depth to space, window partition and attention heads come down to rank 4 or less.
"""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.axes import MAX_RANK, Axes, merged, steps_of
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.graph.graph import static_shape


class Movement(Operation):
    """relax.reshape of relax.permute_dims of relax.reshape, where the middle has a high rank."""

    name = "TRANSPOSE"
    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        first = is_op("relax.reshape")(data, wildcard())
        permute = is_op("relax.permute_dims")(first)
        last = is_op("relax.reshape")(permute, wildcard())
        yield Pattern(last, {"data": data, "first": first, "permute": permute, "last": last})

    def fits(self, site: Site) -> bool:
        shape = static_shape(site["first"])
        return shape is not None and len(shape) > MAX_RANK

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        if steps_of(*merged(*self._wanted(site))) is None:
            return unsupported("rank", "No two transposes of rank 4 do this.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        shape, order = merged(*self._wanted(site))
        value, output = builder.operand(site["data"]), builder.output(site.output)
        for step in steps_of(shape, order) or ():
            folded, axes = merged(shape, step)
            value = builder.reshape(value, folded)
            result = builder.like(value, [folded[a] for a in axes])
            permutation = builder.int32s(axes)
            builder.add("TRANSPOSE", result, input=value, permutation=permutation)
            value, shape = result, tuple(shape[a] for a in step)
        builder.reshape(value, site.output_shape, output)

    @staticmethod
    def _wanted(site: Site) -> tuple[Axes, Axes]:
        shape = site.shape("first")
        axes = site["permute"].attrs.axes
        order = range(len(shape))[::-1] if axes is None else [int(a) % len(shape) for a in axes]
        return shape, tuple(order)


OPERATIONS = (Movement(),)
