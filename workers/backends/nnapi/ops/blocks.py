"""Reshape, transpose, reshape that NNAPI has as one: blocks of pixels, shuffled channels, batches.

Images are [batch, height, width, channels]. What is none of these, `movement` does in steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.backends.nnapi.opset import opset
from workers.backends.nnapi.rearrangements import REARRANGEMENTS, Argument, arguments_of
from workers.graph.graph import static_shape


class Block(Operation):
    """One of the operations, recognized by its shapes."""

    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def __init__(self, name: str) -> None:
        self.name = name

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        first = is_op("relax.reshape")(data, wildcard())
        permute = is_op("relax.permute_dims")(first)
        last = is_op("relax.reshape")(permute, wildcard())
        yield Pattern(last, {"data": data, "first": first, "permute": permute, "last": last})

    def fits(self, site: Site) -> bool:
        if site.feature_level < opset()[self.name].level:
            return False
        shapes = [static_shape(site[part]) for part in ("data", "first", "last")]
        return None not in shapes and self._arguments(site) is not None

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        arguments = self._arguments(site)
        assert arguments is not None  # it fits
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            **{role: _operand(builder, value) for role, value in arguments.items()},
        )

    def _arguments(self, site: Site) -> Mapping[str, Argument] | None:
        pieces, axes = site.shape("first"), site["permute"].attrs.axes
        order = range(len(pieces))[::-1] if axes is None else [int(a) % len(pieces) for a in axes]
        return arguments_of(self.name, site.shape("data"), pieces, order, site.shape("last"))


def _operand(builder: ModelBuilder, value: Argument) -> int:
    return builder.int32(value) if isinstance(value, int) else builder.constant(value)


OPERATIONS = tuple(Block(name) for name in REARRANGEMENTS)
