"""What a recurrent layer is told, and its place in a graph: one call with all its steps.

Accelerators have whole layers, and so has the CPU; written out (`written_out.py`) it is only where
neither takes it. Nothing of the name `FUNCTION` exists: every backend replaces the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

import tvm
from tvm import relax

from workers.graph.graph import dtype_of, static_shape

FUNCTION = "nnfarm.recurrence"

LSTM, RNN, GRU = "LSTM", "RNN", "GRU"

FORWARD, BACKWARD, BOTH = "fw", "bw", "fw bw"
"""Ways to read a sequence."""

GATES = ("input", "forget", "cell", "output")
"""Of an LSTM, in NNAPI's order."""


@dataclass(frozen=True)
class Layer:
    """A recurrent layer without its operands.

    Attributes:
        cell: LSTM, RNN or GRU.
        activation: of an RNN's sum; of an LSTM's candidate and of its cell on the way out: "none",
            "relu", "relu1", "relu6", "tanh" or "sigmoid".
        directions: FORWARD, BACKWARD or BOTH.
        is_time_major: whether steps are the first axis and sequences the second.
        cell_clip: what an LSTM's cell is cut to, plus and minus; 0: not at all.
        projection_clip: the same of its projection.
        is_reset_late: whether a GRU's state is reset behind its product.
    """

    cell: str
    activation: str
    directions: str = FORWARD
    is_time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    is_reset_late: bool = False

    @property
    def ways(self) -> tuple[str, ...]:
        """Directions one by one."""
        return tuple(self.directions.split())

    @property
    def states(self) -> tuple[str, ...]:
        """Operands that are the state before the first step: the output, an LSTM's cell."""
        return ("state_in", "cell_state_in") if self.cell == LSTM else ("state_in",)


@dataclass(frozen=True)
class Recurrence:
    """A layer with its operands.

    Attributes:
        layer: the layer.
        operands: "input" [steps, batch, width] (or batch first, or a single step's [batch, width]),
            and by the roles that NNAPI's operations have, each with its way in front
            ("fw_input_to_cell_weights", "bw_state_in"). Weights are [units, width]; those that
            an LSTM may do without may be left out. A GRU's "weights", "recurrent_weights", "bias"
            and "recurrent_bias" have the gates update, reset and new behind each other, all of
            them constants.
    """

    layer: Layer
    operands: Mapping[str, relax.Expr]

    @property
    def data(self) -> relax.Expr:
        """The input."""
        return self.operands["input"]

    @property
    def is_step(self) -> bool:
        """Whether it is one step, without an axis of steps."""
        return len(self.shape) == 2

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the input."""
        shape = static_shape(self.data)
        if shape is None:
            raise ValueError("a recurrent layer has no static shape")
        return shape

    @property
    def steps_axis(self) -> int:
        """Of a sequence, the axis of its steps."""
        return 0 if self.layer.is_time_major else 1

    @property
    def steps(self) -> int:
        """Number of steps."""
        return 1 if self.is_step else self.shape[self.steps_axis]

    @property
    def batch(self) -> int:
        """Number of sequences."""
        return self.shape[0] if self.is_step else self.shape[1 - self.steps_axis]

    def of_way(self, way: str) -> Mapping[str, relax.Expr]:
        """Operands of one direction, by NNAPI's roles of an operation with one direction."""
        prefix = f"{way}_"
        return {
            name.removeprefix(prefix): operand
            for name, operand in self.operands.items()
            if name.startswith(prefix)
        }

    def alone(self, way: str, data: relax.Expr) -> Recurrence:
        """One direction as a layer of its own, which reads other data forwards."""
        operands = {f"{FORWARD}_{role}": one for role, one in self.of_way(way).items()}
        layer = replace(self.layer, directions=FORWARD)
        return Recurrence(layer, {"input": data, **operands})

    def width(self, way: str, state: str = "state_in") -> int:
        """Numbers of a step's output, or of another state."""
        return (static_shape(self.operands[f"{way}_{state}"]) or (0, 0))[1]

    def call(self) -> relax.Call:
        """The call.

        Returns:
            A tuple: the outputs of all steps in the input's order of axes, those of two ways side
            by side; then for each way the last output [batch, width], an LSTM's last cell.
        """
        layer, dtype = self.layer, dtype_of(self.data)
        whole = (*self.shape[:-1], sum(self.width(way) for way in layer.ways))
        last = [(self.batch, self.width(way, s)) for way in layer.ways for s in layer.states]
        types = [relax.TensorType(shape, dtype) for shape in (whole, *last)]
        call = relax.call_dps_packed(FUNCTION, relax.Tuple(list(self.operands.values())), types)
        attrs = tvm.ir.make_node("ir.DictAttrs", roles=" ".join(self.operands), **asdict(layer))
        return relax.Call(call.op, call.args, attrs, call.ty_args)


def recurrence_of(expr: relax.Expr) -> Recurrence | None:
    """The layer that an expression is a call of; None for anything else."""
    if not isinstance(expr, relax.Call) or not expr.args:
        return None
    function = expr.args[0]
    if not isinstance(function, relax.ExternFunc) or function.global_symbol != FUNCTION:
        return None
    types = {"str": str, "bool": bool, "float": float}
    layer = Layer(**{f.name: types[str(f.type)](expr.attrs[f.name]) for f in fields(Layer)})
    roles = str(expr.attrs["roles"]).split()
    return Recurrence(layer, dict(zip(roles, expr.args[1].fields, strict=True)))
