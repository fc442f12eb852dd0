"""LSTMs that came written out (loops of Keras, cells in a loop of PyTorch) as layers again.

NNAPI has the layer as one operation; where a level has not, it is written out once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, static_shape
from workers.graph.origins import with_origins_of
from workers.graph.recurrence.chains import chains_of
from workers.graph.recurrence.layer import BACKWARD, FORWARD, GATES, LSTM, Layer, Recurrence
from workers.graph.recurrence.steps import Step, direction_of, numbers_of
from workers.graph.rewriter import GraphRewriter
from workers.pipeline.passes.cancel import cancel_movements
from workers.pipeline.passes.parts import take_parts

_MOST_ROUNDS = 16
"""Layers behind each other: each shows its steps when the one in front of it is found."""


def find_layers(graph: Graph) -> Graph:
    """The graph with every chain of LSTM steps as one call."""
    for _ in range(_MOST_ROUNDS):
        chains = [found for chain in chains_of(graph.value_of) if (found := _chain(graph, chain))]
        if not chains:
            break
        rolled = GraphRewriter(_Finder(graph, chains).run()).run(lambda *_: None)
        graph = take_parts(cancel_movements(with_origins_of(graph, rolled)))
    return graph


@dataclass(frozen=True)
class _Chain:
    """A layer: its steps in the order they are taken, and what they read.

    Attributes:
        steps: the steps.
        data: [steps, batch, width], or batch first, a variable of the graph.
        weights: of the input, [width, 4 * units].
        biases: of the sums, added to those of the steps.
    """

    steps: Sequence[Step]
    data: relax.Var
    weights: relax.Expr
    biases: tuple[relax.Expr, ...]

    @property
    def first(self) -> Step:
        return self.steps[0]


def _chain(graph: Graph, steps: Sequence[Step]) -> _Chain | None:
    """None where the input's weights are not known, or cells on the way are read."""
    readers = (len(graph.users.get(step.cell, ())) for step in steps[:-1])
    returned = set(graph.outputs)
    if any(count > 2 for count in readers) or any(s.cell in returned for s in steps[:-1]):
        return None
    first = steps[0]
    if first.input_weight is not None:
        return _Chain(steps, first.inputs.source, first.input_weight, ())
    source: relax.Expr = first.inputs.source
    biases: list[relax.Expr] = []
    while (added := _added_constant(graph, source)) is not None:
        source, bias = added
        biases.append(bias)
    product = graph.value_of.get(source)
    if not isinstance(product, relax.Call) or product.op.name != "relax.matmul":
        return None
    data, weights = product.args
    if constant_value(weights) is None or not isinstance(data, relax.Var):
        return None
    if len(static_shape(data) or ()) != 3 or len(static_shape(weights) or ()) != 2:
        return None
    return _Chain(steps, data, weights, tuple(biases))


def _added_constant(graph: Graph, expr: relax.Expr) -> tuple[relax.Expr, relax.Expr] | None:
    call = graph.value_of.get(expr)
    if not isinstance(call, relax.Call) or getattr(call.op, "name", "") != "relax.add":
        return None
    size = (static_shape(expr) or (0,))[-1]
    for one, other in (call.args, reversed(call.args)):
        array = constant_value(other)
        if array is not None and array.size == size == array.shape[-1]:
            return one, other
    return None


@dataclass(frozen=True)
class _Call:
    """A layer in the new graph: its results, and the first of them."""

    var: relax.Expr
    outputs: relax.Expr


class _Finder:
    """One walk that puts layers in the place of their steps."""

    def __init__(self, graph: Graph, chains: Sequence[_Chain]) -> None:
        self._rewriter = GraphRewriter(graph)
        self._calls: dict[relax.Var, _Call] = {}  # by the first state
        self._states: dict[relax.Var, tuple[_Chain, int]] = {}
        self._cells: dict[relax.Var, _Chain] = {}
        for chain in chains:
            for number, step in enumerate(chain.steps):
                self._states[step.state] = chain, number
            self._cells[chain.steps[-1].cell] = chain

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        if binding.var in self._states:
            return self._state(*self._states[binding.var])
        if binding.var in self._cells:
            call = self._call(self._cells[binding.var])
            return self._shaped(rewriter.emit(relax.TupleGetItem(call.var, 2)), binding.var)
        return None

    def _state(self, chain: _Chain, number: int) -> relax.Expr:
        """The output of a step, cut out of those of all steps."""
        state = chain.steps[number].state
        call, place, axis = self._call(chain), number, chain.first.inputs.axis
        if direction_of(chain.steps) < 0:
            place = len(chain.steps) - 1 - number
        one = relax.op.strided_slice(call.outputs, [axis], [place], [place + 1])
        return self._shaped(self._rewriter.emit(one), state)

    def _shaped(self, value: relax.Expr, like: relax.Expr) -> relax.Expr:
        shape = static_shape(like)
        if static_shape(value) == shape:
            return value
        return self._rewriter.emit(relax.op.reshape(value, shape))

    def _call(self, chain: _Chain) -> _Call:
        key, emit = chain.first.state, self._rewriter.emit
        if key not in self._calls:
            origins = frozenset().union(
                *(
                    self._rewriter.graph.origin_of(var)
                    for s in chain.steps
                    for var in (s.state, s.cell)
                )
            )
            var = emit(self._recurrence(chain).call(), origins)
            self._calls[key] = _Call(var, emit(relax.TupleGetItem(var, 0), origins))
        return self._calls[key]

    def _recurrence(self, chain: _Chain) -> Recurrence:
        first, emit, new = chain.first, self._rewriter.emit, self._rewriter.new
        way = FORWARD if direction_of(chain.steps) > 0 else BACKWARD
        axis = first.inputs.axis
        data, length = new(chain.data), (static_shape(chain.data) or ())[axis]
        if length != len(chain.steps):
            begin = min(first.inputs.index, chain.steps[-1].inputs.index)
            cut = relax.op.strided_slice(data, [axis], [begin], [begin + len(chain.steps)])
            data = emit(cut)
        batch = (static_shape(chain.data) or ())[1 - axis]
        units = (static_shape(first.state) or (0,))[-1]
        operands = {"input": data}
        for role, array in _weights(chain, units).items():
            operands[f"{way}_{role}"] = relax.const(np.ascontiguousarray(array))
        for role, before in (
            ("state_in", first.state_before),
            ("cell_state_in", first.cell_before),
        ):
            known = constant_value(before)
            if known is not None:
                shaped = relax.const(np.ascontiguousarray(known.reshape(batch, units)))
            else:
                shaped = emit(relax.op.reshape(new(before), (batch, units)))
            operands[f"{way}_{role}"] = shaped
        return Recurrence(Layer(LSTM, "tanh", way, is_time_major=axis == 0), operands)


def _weights(
    chain: _Chain, units: int
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """By NNAPI's roles; gates are columns of what the steps multiply by."""
    first = chain.first
    biases = sum(
        (numbers_of(b).reshape(-1) for b in (*chain.biases, *first.biases)),
        np.zeros(len(GATES) * units, np.float32),
    )
    found = {}
    for gate, place in zip(GATES, first.order, strict=True):
        columns = slice(place * units, (place + 1) * units)
        found[f"input_to_{gate}_weights"] = numbers_of(chain.weights)[:, columns].T
        found[f"recurrent_to_{gate}_weights"] = numbers_of(first.weight)[:, columns].T
        found["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = biases[columns]
    return found
