"""What emitters need of the importer: where results are written, and a model's variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import tvm
from tvm import relax, tirx

from workers.frontends.tflite.model import Tensor, TFLiteModel


@dataclass
class Variables:
    """Variables of a model.

    Attributes:
        names: container and name, by handle.
        values: by handle.
        is_beginning: whether it is the model's beginning that is being converted.
    """

    names: list[tuple[bytes, bytes]] = field(default_factory=list)
    values: dict[int, relax.Expr] = field(default_factory=dict)
    is_beginning: bool = False

    def handle(self, names: tuple[bytes, bytes]) -> int:
        """The number of a variable."""
        if names not in self.names:
            self.names.append(names)
        return self.names.index(names)


class Writer(Protocol):
    """What an emitter needs of the importer."""

    variables: Variables

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """Bind an expression; constants and variables pass through."""

    def define(self, function: tirx.PrimFunc, name: str) -> tvm.ir.GlobalVar:
        """Put a TIR function into the module."""

    def note(self, sentence: str) -> None:
        """Say something in the report's row of the operator."""

    def inline(self, model: TFLiteModel, arguments: Sequence[relax.Expr]) -> list[relax.Expr]:
        """Emit all operators of a graph."""

    def constant(self, tensor: Tensor, axes: tuple[int, ...] | None) -> relax.Expr:
        """A constant of the file, its axes in another order; the same one each time."""
