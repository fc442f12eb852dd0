"""Recurrent layers in the form a level has: whole where NNAPI takes them, else step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from workers.backends.nnapi.recurrent_operands import (
    ACTIVATIONS,
    norms_level,
    operation_of,
    states_level,
)
from workers.graph.graph import Binding, Graph
from workers.graph.recurrence.layer import BACKWARD, GRU, LSTM, Recurrence, recurrence_of
from workers.graph.recurrence.written_out import written_out
from workers.graph.rewriter import GraphRewriter

Items = Mapping[int, relax.Expr]
"""Items of a layer's tuple by their index; those that are read."""


def settle_layers(graph: Graph, feature_level: int) -> Graph:
    """Every recurrent layer as one operation of the level, or as the operations of its steps.

    Args:
        graph: normalised.
        feature_level: the level to be claimed for.
    """
    if not any(recurrence_of(binding.value) for binding in graph.bindings):
        return graph
    results: dict[relax.Var, Items] = {}

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        value = binding.value
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in results:
            return results[value.tuple_value][value.index]
        old = recurrence_of(value)
        if old is None:
            return None
        operands = {name: rewriter.new(operand) for name, operand in old.operands.items()}
        settler = _Settler(rewriter, feature_level, _items_read(graph, binding.var))
        items = settler.settled(Recurrence(old.layer, operands))
        results[binding.var] = items
        return next(iter(items.values()))

    return GraphRewriter(graph).run(rule)


def _items_read(graph: Graph, var: relax.Var) -> frozenset[int]:
    readers = (reader.value for reader in graph.users.get(var, ()))
    return frozenset(r.index for r in readers if isinstance(r, relax.TupleGetItem))


class _Settler:
    """One layer's form at a level."""

    def __init__(self, rewriter: GraphRewriter, feature_level: int, read: frozenset[int]) -> None:
        self._emit = rewriter.emit
        self._level = feature_level
        self._read = read

    def settled(self, recurrence: Recurrence) -> Items:
        """What is read of the layer's results."""
        if recurrence.steps == 1:
            return self._step(recurrence)
        if recurrence.layer.directions == BACKWARD:
            forward = recurrence.alone(BACKWARD, recurrence.data)
            if self._is_taken(forward):
                return self._from_the_end(recurrence)
        elif self._is_taken(recurrence):
            return self._whole(recurrence)
        return dict(enumerate(written_out(recurrence, self._emit)))

    def _is_taken(self, recurrence: Recurrence) -> bool:
        if recurrence.layer.cell == GRU:  # NNAPI has none
            return False
        level = max(operation_of(recurrence).level, norms_level(recurrence))
        if self._level < level or recurrence.layer.activation not in ACTIVATIONS:
            return False
        # Last outputs can be cut out of the outputs of all steps, last cells cannot.
        reads_cells = recurrence.layer.cell == LSTM and bool(self._read & {2, 4})
        return not reads_cells or self._level >= states_level(recurrence)

    def _whole(self, recurrence: Recurrence) -> Items:
        call = self._emit(recurrence.call())
        if self._level >= states_level(recurrence):
            return {i: self._emit(relax.TupleGetItem(call, i)) for i in sorted(self._read)}
        items = {0: self._emit(relax.TupleGetItem(call, 0))}
        count, begin = len(recurrence.layer.states), 0
        for number, way in enumerate(recurrence.layer.ways):
            end = begin + recurrence.width(way)
            if 1 + number * count in self._read:
                items[1 + number * count] = self._last(recurrence, items[0], way, (begin, end))
            begin = end
        return items

    def _last(
        self, recurrence: Recurrence, whole: relax.Expr, way: str, columns: tuple[int, int]
    ) -> relax.Expr:
        """The output of a direction's last step, its columns of all steps' outputs."""
        place = 0 if way == BACKWARD else recurrence.steps - 1
        axes, begins, ends = (
            [recurrence.steps_axis, 2],
            [place, columns[0]],
            [place + 1, columns[1]],
        )
        one = self._emit(relax.op.strided_slice(whole, axes, begins, ends))
        return self._emit(relax.op.reshape(one, (recurrence.batch, columns[1] - columns[0])))

    def _from_the_end(self, recurrence: Recurrence) -> Items:
        """Backwards is forwards over what is turned round."""
        axis = recurrence.steps_axis
        data = self._emit(relax.op.flip(recurrence.data, axis))
        items = dict(self._whole(recurrence.alone(BACKWARD, data)))
        if 0 in self._read:
            items[0] = self._emit(relax.op.flip(items[0], axis))
        return items

    def _step(self, recurrence: Recurrence) -> Items:
        """A sequence of one step has no axis of steps: each direction is a cell."""
        data = recurrence.data
        if not recurrence.is_step:
            data = self._emit(relax.op.reshape(data, (recurrence.batch, recurrence.shape[2])))
        cells = [recurrence.alone(way, data) for way in recurrence.layer.ways]
        if not self._is_taken(cells[0]):
            return dict(enumerate(written_out(recurrence, self._emit)))
        items: dict[int, relax.Expr] = {}
        outputs = []
        for number, cell in enumerate(cells):
            call, first = self._emit(cell.call()), 1 + number * len(cell.layer.states)
            for place in range(len(cell.layer.states)):
                if first + place in self._read:
                    items[first + place] = self._emit(relax.TupleGetItem(call, 1 + place))
            if 0 in self._read:
                outputs.append(self._emit(relax.TupleGetItem(call, 0)))
        if outputs:
            items[0] = self._joined(recurrence, outputs)
        return items

    def _joined(self, recurrence: Recurrence, outputs: Sequence[relax.Expr]) -> relax.Expr:
        whole = outputs[0] if len(outputs) == 1 else self._emit(relax.op.concat(outputs, -1))
        if recurrence.is_step:
            return whole
        width = sum(map(recurrence.width, recurrence.layer.ways))
        return self._emit(relax.op.reshape(whole, (*recurrence.shape[:2], width)))
