"""What an op file is made of: patterns, one check and one lowering, in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.dpl import DFPattern, is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.model import Activation
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.quantization import Quantization, quantization_of


@dataclass(frozen=True)
class Pattern:
    """A Relax pattern with names for its parts.

    Attributes:
        root: the whole pattern; its outermost call is what the operation computes.
        parts: named sub-patterns; calls among them belong to the match.
    """

    root: DFPattern
    parts: Mapping[str, DFPattern]

    @property
    def root_op(self) -> str:
        """Relax operator of the outermost call."""
        return str(self.root.op.expr.name)


@dataclass(frozen=True)
class Numbers:
    """What a site knows of quantization.

    Attributes:
        of_variables: parameters of the graph's quantized variables.
        dequantized: the site's own dequantize calls by their variables; real numbers of
            constants, and for a site that takes integers also of variables.
        takes_integers: whether the operation computes on the integers and gives integers.
        half: whether float32 tensors of the graph become float16.
        coarse: real variables that take few values: what is made of quantized tensors.
    """

    of_variables: Mapping[relax.Var, Quantization] = field(default_factory=dict)
    dequantized: Mapping[relax.Var, relax.Call] = field(default_factory=dict)
    takes_integers: bool = False
    half: bool = False
    coarse: frozenset[relax.Var] = frozenset()


class Site:
    """A match of a pattern in a graph, seen at one feature level."""

    def __init__(
        self,
        parts: Mapping[str, relax.Expr],
        output: relax.Var,
        feature_level: int,
        numbers: Numbers,
    ) -> None:
        self._parts = parts
        self.output = output
        self.feature_level = feature_level
        self.numbers = numbers

    def at_level(self, feature_level: int) -> Site:
        """The same match seen at another level."""
        return Site(self._parts, self.output, feature_level, self.numbers)

    def __contains__(self, part: str) -> bool:
        return part in self._parts

    def __getitem__(self, part: str) -> relax.Expr:
        return self._parts[part]

    def shape(self, part: str) -> tuple[int, ...]:
        """Static shape of a part; `check_tensors` has made sure there is one."""
        shape = static_shape(self._parts[part])
        if shape is None:
            raise ValueError(f"{part} has no static shape")
        return shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Static shape of the result."""
        shape = static_shape(self.output)
        if shape is None:
            raise ValueError("the result has no static shape")
        return shape

    def constant(self, part: str) -> NDArray[np.generic] | None:
        """Real values of a constant part, None where it is not constant."""
        return self.constant_of(self._parts[part])

    def constant_of(self, expr: relax.Expr) -> NDArray[np.generic] | None:
        """Real values of a constant expression, quantized or not, None where it is not constant."""
        call = self._dequantize_of(expr)
        if call is None:
            return constant_value(expr)
        array, numbers = constant_value(call.args[0]), quantization_of(call)
        return None if array is None or numbers is None else numbers.dequantize(array)

    def integers(self, part: str) -> NDArray[np.generic] | None:
        """Integers of a constant quantized part, None where it is not that."""
        call = self._dequantize_of(self._parts[part])
        return None if call is None else constant_value(call.args[0])

    @property
    def takes_integers(self) -> bool:
        """Whether the operation computes on quantized tensors."""
        return self.numbers.takes_integers

    def quantization(self, expr: relax.Expr) -> Quantization | None:
        """Parameters of an operand or the output, None where it is not quantized."""
        call = self._dequantize_of(expr)
        if call is not None:
            return quantization_of(call)
        return self.numbers.of_variables.get(expr) if isinstance(expr, relax.Var) else None

    def element_type(self, expr: relax.Expr) -> str:
        """Element type as the table has it; a constant is what its neighbours are."""
        call = self._dequantize_of(expr) if self.takes_integers else None
        dtype = dtype_of(expr if call is None else call.args[0])
        if self.numbers.half and dtype == "float32":
            return "float16"
        return QUANTIZED_TYPES.get(dtype, dtype)

    def is_same(self, one: str, other: str) -> bool:
        """Whether two parts are one tensor; quantized, each reader has a dequantize of its own."""
        first, second = (self._source(self._parts[part]) for part in (one, other))
        return bool(first.same_as(second))

    def _source(self, expr: relax.Expr) -> relax.Expr:
        call = self._dequantize_of(expr)
        return expr if call is None else call.args[0]

    def _dequantize_of(self, expr: relax.Expr) -> relax.Call | None:
        return self.numbers.dequantized.get(expr) if isinstance(expr, relax.Var) else None

    @property
    def activation(self) -> Activation | None:
        """The fused activation of part "act"; None where NNAPI cannot fuse it (no match then)."""
        if "act" not in self:
            return Activation.NONE
        call = self["act"]
        if call.op.name == "relax.nn.relu":
            return Activation.RELU
        return CLIPS.get(clip_bounds(call))


QUANTIZED_TYPES = {"uint8": "quant8_asymm", "int8": "quant8_asymm_signed"}
"""Names in the table of operations of the types whose integers stand for real numbers."""


CLIPS: dict[tuple[float, float], Activation] = {
    (0.0, 6.0): Activation.RELU6,
    (-1.0, 1.0): Activation.RELU1,
    (0.0, float("inf")): Activation.RELU,
}
"""Clips that NNAPI has as activations."""


def clip_bounds(call: relax.Call) -> tuple[float, float]:
    """Bounds of a relax.clip."""
    low, high = (float(getattr(arg, "value", arg)) for arg in call.args[1:3])
    return low, high


@dataclass(frozen=True)
class QuantizedForm:
    """The rule an operation has for its output's scale and zero point.

    Attributes:
        is_as_input: they are those of the (first) input.
        fixed: the least step NNAPI names instead, with the zero point of uint8; int8's is 128 less.
        gives_plain: the result is no quantized tensor (a truth value, an index).
    """

    is_as_input: bool = False
    fixed: tuple[float, int] | None = None
    gives_plain: bool = False


class Operation(ABC):
    """One NNAPI operation, or a family that differs by name only.

    Attributes:
        name: for the report and in the table of operations.
        computes: False for operations that only move data.
        quantized: the rule for quantized tensors; None where `lower` is for real numbers only, and
            a quantized model's operation runs between DEQUANTIZE and QUANTIZE.
        gives_several: whether the outermost call gives a tuple; its items that are read are the
            parts "result0" and so on.
    """

    name: str
    computes: bool = True
    quantized: QuantizedForm | None = None
    gives_several: bool = False

    @abstractmethod
    def patterns(self) -> Iterator[Pattern]:
        """What to look for; larger patterns win over smaller ones."""

    def fits(self, site: Site) -> bool:
        """Whether the match is this operation's business at all (groups, axes, method).

        Several operations share patterns; only those that fit are asked for a reason. Shapes may
        be unknown here.
        """
        del site
        return True

    @abstractmethod
    def check(self, site: Site) -> Rejection | None:
        """Why NNAPI cannot take the site at its level; None: `lower` will take it."""

    @abstractmethod
    def lower(self, site: Site, builder: ModelBuilder) -> None:
        """Append the operations that compute `site.output`."""


def with_activations(root: DFPattern, parts: Mapping[str, DFPattern]) -> Iterator[Pattern]:
    """The pattern followed by an activation, and alone."""
    clip = is_op("relax.clip")(root, wildcard(), wildcard())
    relu = is_op("relax.nn.relu")(root)
    yield Pattern(clip, {**parts, "act": clip})
    yield Pattern(relu, {**parts, "act": relu})
    yield Pattern(root, parts)
