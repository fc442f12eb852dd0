"""What an op file is made of: patterns, one check and one lowering, in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.dpl import DFPattern, is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.model import Activation, ModelBuilder
from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, dtype_of, static_shape


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


class Site:
    """A match of a pattern in a graph, seen at one feature level."""

    def __init__(
        self, parts: Mapping[str, relax.Expr], output: relax.Var, feature_level: int
    ) -> None:
        self._parts = parts
        self.output = output
        self.feature_level = feature_level

    def at_level(self, feature_level: int) -> Site:
        """The same match seen at another level."""
        return Site(self._parts, self.output, feature_level)

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
        """Array of a constant part, None where it is not constant."""
        return constant_value(self._parts[part])

    @property
    def activation(self) -> Activation | None:
        """The fused activation of part "act"; None where NNAPI cannot fuse it (no match then)."""
        if "act" not in self:
            return Activation.NONE
        call = self["act"]
        if call.op.name == "relax.nn.relu":
            return Activation.RELU
        return CLIPS.get(clip_bounds(call))


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


class Operation(ABC):
    """One NNAPI operation, or a family that differs by name only.

    Attributes:
        name: for the report and for opset.toml.
        computes: False for operations that only move data.
    """

    name: str
    computes: bool = True

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


def needs_level(what: str, level: int, asked: int) -> Rejection | None:
    """A rejection where `what` needs a higher level than asked."""
    if level <= asked:
        return None
    return Rejection(
        code="nnapi.needs_level",
        sentence=f"{what} needs NNAPI feature level {level}; level {asked} was asked.",
        needed_level=level,
    )


def unsupported(code: str, sentence: str) -> Rejection:
    """A rejection that no feature level lifts."""
    return Rejection(code=f"nnapi.{code}", sentence=sentence, needed_level=None)


def check_tensors(site: Site, name: str, exprs: Sequence[relax.Expr]) -> Rejection | None:
    """The rules every operation has: level, element types, static shapes, ranks.

    Args:
        site: the match.
        name: operation of opset.toml.
        exprs: tensors that cross the operation's border; the first sets type and rank rules.
    """
    spec = opset()[name]
    too_old = needs_level(name, spec.level, site.feature_level)
    if too_old is not None:
        return too_old
    for expr in (*exprs, site.output):
        shape, dtype = static_shape(expr), dtype_of(expr)
        if shape is None:
            return unsupported("dynamic_shape", f"{name} needs shapes known at compile time.")
        if dtype not in spec.types:
            return unsupported("dtype", f"{name} does not take {dtype or 'untyped'} tensors.")
        type_rejection = needs_level(
            f"{name} on {dtype} tensors", spec.types[dtype], site.feature_level
        )
        if type_rejection is not None:
            return type_rejection
        if 0 in shape:
            return unsupported("zero_size", f"{name} has an empty tensor of shape {shape}.")
        is_scalar_constant = not shape and constant_value(expr) is not None
        if not is_scalar_constant and not 1 <= len(shape) <= spec.rank[1]:
            return unsupported(
                "rank", f"{name} takes tensors of rank 1 to {spec.rank[1]}, not {len(shape)}."
            )
    rank = len(static_shape(exprs[0]) or ())
    if rank < spec.rank[0] and constant_value(exprs[0]) is None:
        return unsupported("rank", f"{name} takes rank {spec.rank[0]} or more, not {rank}.")
    return None


def with_activations(root: DFPattern, parts: Mapping[str, DFPattern]) -> Iterator[Pattern]:
    """The pattern followed by an activation, and alone."""
    clip = is_op("relax.clip")(root, wildcard(), wildcard())
    relu = is_op("relax.nn.relu")(root)
    yield Pattern(clip, {**parts, "act": clip})
    yield Pattern(relu, {**parts, "act": relu})
    yield Pattern(root, parts)
