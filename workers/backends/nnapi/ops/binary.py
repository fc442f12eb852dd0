"""Operations on two tensors with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    QuantizedForm,
    Site,
    with_activations,
)


class Arithmetic(Operation):
    """ADD, SUB, MUL, DIV: these can fuse an activation."""

    def __init__(self, name: str, relax_op: str, quantized: QuantizedForm | None = None) -> None:
        self.name = name
        self.quantized = quantized
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        lhs, rhs = wildcard(), wildcard()
        root = is_op(self._relax_op)(lhs, rhs)
        yield from with_activations(root, {"lhs": lhs, "rhs": rhs, "op": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["lhs"], site["rhs"]])
        if rejection is None and self.name == "DIV" and "int" in str(site.output.ty.dtype):
            return unsupported("rounding", "DIV rounds integers down, the model towards zero.")
        if rejection is None and self.name == "MUL" and site.takes_integers:
            return self._check_product(site)
        return rejection

    @staticmethod
    def _check_product(site: Site) -> Rejection | None:
        """NeuralNetworksTypes.h, MUL: the output's scale is above the product of the inputs'."""
        lhs, rhs, output = (site.quantization(e) for e in (site["lhs"], site["rhs"], site.output))
        if lhs and rhs and output and output.scale > lhs.scale * rhs.scale:
            return None
        return unsupported("quantization", "MUL needs an output scale above its inputs' product.")

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(
            self.name,
            builder.output(site.output),
            lhs=builder.operand(site["lhs"]),
            rhs=builder.operand(site["rhs"]),
            activation=builder.int32(site.activation or Activation.NONE),
        )


class Plain(Operation):
    """Two operands and nothing else: extremes, powers, comparisons, logic."""

    def __init__(
        self,
        name: str,
        relax_op: str,
        roles: tuple[str, str],
        quantized: QuantizedForm | None = None,
    ) -> None:
        self.name = name
        self.quantized = quantized
        self._relax_op = relax_op
        self._roles = roles

    def patterns(self) -> Iterator[Pattern]:
        lhs, rhs = wildcard(), wildcard()
        yield Pattern(is_op(self._relax_op)(lhs, rhs), {"lhs": lhs, "rhs": rhs})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["lhs"], site["rhs"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        operands = (builder.operand(site["lhs"]), builder.operand(site["rhs"]))
        builder.add(
            self.name,
            builder.output(site.output),
            **dict(zip(self._roles, operands, strict=True)),
        )


OPERATIONS = (
    Arithmetic("ADD", "relax.add", QuantizedForm()),
    Arithmetic("SUB", "relax.subtract", QuantizedForm()),
    Arithmetic("MUL", "relax.multiply", QuantizedForm()),
    Arithmetic("DIV", "relax.divide"),
    Plain("MAXIMUM", "relax.maximum", ("lhs", "rhs"), QuantizedForm()),
    Plain("MINIMUM", "relax.minimum", ("lhs", "rhs"), QuantizedForm()),
    Plain("POW", "relax.power", ("base", "exponent")),
    Plain("EQUAL", "relax.equal", ("lhs", "rhs"), QuantizedForm(gives_plain=True)),
    Plain("NOT_EQUAL", "relax.not_equal", ("lhs", "rhs"), QuantizedForm(gives_plain=True)),
    Plain("GREATER", "relax.greater", ("lhs", "rhs"), QuantizedForm(gives_plain=True)),
    Plain("GREATER_EQUAL", "relax.greater_equal", ("lhs", "rhs"), QuantizedForm(gives_plain=True)),
    Plain("LESS", "relax.less", ("lhs", "rhs"), QuantizedForm(gives_plain=True)),
    Plain("LESS_EQUAL", "relax.less_equal", ("lhs", "rhs"), QuantizedForm(gives_plain=True)),
    Plain("LOGICAL_AND", "relax.logical_and", ("lhs", "rhs")),
    Plain("LOGICAL_OR", "relax.logical_or", ("lhs", "rhs")),
)
