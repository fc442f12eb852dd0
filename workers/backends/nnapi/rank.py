"""Tensors of rank 5 and more, as tensors of rank 4 at most.

NNAPI ends at rank 4. Detection heads work on [1, anchors, height, width, values], attention on
[windows, tokens, 3, heads, size]: what is computed element by element, along an axis or by a stack
of products is the same on tensors whose other axes are joined.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relax

from workers.backends.nnapi.axes import MAX_RANK, merged, steps_of
from workers.backends.nnapi.folding import FOLDED, Shape, elementwise
from workers.graph.graph import Binding, Graph, constant_value, static_shape
from workers.graph.quantization import DEQUANTIZE, QUANTIZE, quantization_of
from workers.graph.rewriter import GraphRewriter, Lazy

_UNARY = """
nn.relu nn.leakyrelu nn.silu nn.gelu nn.gelu_tanh nn.softplus nn.selu sigmoid tanh exp log sqrt
rsqrt abs negative floor ceil round erf sin cos sign square clip astype isnan logical_not
"""
_BINARY = """
add subtract multiply divide power maximum minimum equal not_equal less less_equal greater
greater_equal logical_and logical_or logical_xor mod floor_mod floor_divide where
"""
ELEMENTWISE = frozenset(f"relax.{name}" for name in f"{_UNARY} {_BINARY}".split())
"""Operators that work on each element by itself."""


def lower_ranks(graph: Graph) -> Graph:
    """The same graph, tensors of high rank with joined axes wherever that is known how."""
    if not any(_is_high(static_shape(b.var)) for b in graph.bindings if b.call is not None):
        return graph
    return _Pass(graph).run()


def _is_high(shape: Sequence[int] | None) -> bool:
    return shape is not None and len(shape) > MAX_RANK


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rewriter = GraphRewriter(graph)
        self._joined: dict[relax.Var, relax.Expr] = {}  # old variable -> the elements, reshaped

    def run(self) -> Graph:
        graph = self._rewriter.run(self._rule)
        # Once more: operands reshaped for a rule that then did not serve are not to be claimed.
        return GraphRewriter(graph).run(lambda *_: None)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, shape = binding.call, static_shape(binding.var)
        if call is None or shape is None:
            return None
        if call.op.name == "relax.reshape":
            return self._reshape(binding.var, call, shape)
        if not any(_is_high(static_shape(v)) for v in (binding.var, *_tensors(call))):
            return None
        if any(static_shape(tensor) is None for tensor in _tensors(call)):
            return None
        result = self._lowered(binding, call)
        if result is None:
            return None
        low = rewriter.emit(result)
        if static_shape(low) == shape:
            return low
        return self._keep(binding.var, low, shape)

    def _keep(self, var: relax.Var, low: relax.Expr, shape: Shape) -> Lazy:
        self._joined[var] = low
        origins = self._rewriter.current_origins
        return lambda: self._rewriter.emit(relax.op.reshape(low, shape), origins)

    def _reshape(self, var: relax.Var, call: relax.Call, shape: Shape) -> relax.Expr | Lazy | None:
        source = call.args[0]
        is_high = _is_high(shape) and not self._is_in_movement(var)
        if is_high and static_shape(source) is not None and constant_value(source) is None:
            return self._keep(var, self._any_form(source), shape)
        if isinstance(source, relax.Var) and source in self._joined:
            return self._rewriter.emit(relax.op.reshape(self._joined[source], shape))
        return None

    def _any_form(self, expr: relax.Expr) -> relax.Expr:
        if isinstance(expr, relax.Var) and expr in self._joined:
            return self._joined[expr]
        return self._rewriter.new(expr)

    def _is_in_movement(self, var: relax.Var) -> bool:
        """Whether a transpose and a reshape follow, which are claimed together with this one."""
        readers = self._graph.users.get(var, ())
        return len(readers) == 1 and self._is_moved(readers[0])

    def _is_moved(self, permute: Binding) -> bool:
        """Whether a transpose stands between two reshapes and has no other reader."""
        if permute.call is None or permute.op_name != "relax.permute_dims":
            return False
        source, readers = permute.call.args[0], self._graph.users.get(permute.var, ())
        first = self._graph.value_of.get(source) if isinstance(source, relax.Var) else None
        return (
            isinstance(first, relax.Call)
            and getattr(first.op, "name", "") == "relax.reshape"
            and len(self._graph.users[source]) == 1
            and [reader.op_name for reader in readers] == ["relax.reshape"]
            and not {source, permute.var} & set(self._graph.outputs)
        )

    def _lowered(self, binding: Binding, call: relax.Call) -> relax.Expr | None:
        name = call.op.name
        if name == "relax.permute_dims":
            return None if self._is_moved(binding) else self._permute(call)
        if name in (QUANTIZE, DEQUANTIZE):
            return self._between_numbers(call)
        rule = elementwise if name in ELEMENTWISE else FOLDED.get(name)
        result = rule(call, self._reshaped) if rule is not None else None
        if not isinstance(result, relax.Call):
            return result
        if _is_high(static_shape(self._rewriter.typed(result))):
            return None
        is_low = not any(_is_high(static_shape(tensor)) for tensor in _tensors(result))
        return result if is_low else None

    def _reshaped(self, expr: relax.Expr, shape: Shape) -> relax.Expr:
        array = constant_value(expr)
        if array is not None:
            return relax.const(array.reshape(shape), array.dtype.name)
        value = self._any_form(expr)
        if static_shape(value) == shape:
            return value
        source = self._graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
        if source is not None and _has_one_scale(source, DEQUANTIZE):
            # Next to its reader, or the quantized unit it belongs to falls apart.
            integers = self._reshaped(source.args[0], shape)
            return self._rewriter.emit(self._with_data(source, integers))
        return self._rewriter.emit(relax.op.reshape(value, shape))

    def _between_numbers(self, call: relax.Call) -> relax.Expr | None:
        """(De)quantize with one scale, in the form its operand has already."""
        data = call.args[0]
        low = self._joined.get(data) if isinstance(data, relax.Var) else None
        if low is None or _is_high(static_shape(low)):
            return None
        return self._with_data(call, low) if _has_one_scale(call, call.op.name) else None

    @staticmethod
    def _with_data(call: relax.Call, data: relax.Expr) -> relax.Call:
        return relax.Call(call.op, [data, *call.args[1:]], call.attrs, call.ty_args)

    def _permute(self, call: relax.Call) -> relax.Expr | None:
        source = static_shape(call.args[0]) or ()
        axes = call.attrs.axes
        rank = len(source)
        wanted = [*range(rank)][::-1] if axes is None else [int(a) % rank for a in axes]
        shape, order = merged(source, wanted)
        value: relax.Expr | None = None
        for step in steps_of(shape, order) or ():
            folded, short = merged(shape, step)
            if value is None:
                value = self._reshaped(call.args[0], folded)
            else:
                value = self._rewriter.emit(relax.op.reshape(value, folded))
            value = self._rewriter.emit(relax.op.permute_dims(value, short))
            shape = tuple(shape[a] for a in step)
        return value


def _has_one_scale(expr: relax.Expr, name: str) -> bool:
    """Whether it is that operation, (de)quantize, with one scale for the whole tensor."""
    if not isinstance(expr, relax.Call) or getattr(expr.op, "name", "") != name:
        return False
    numbers = quantization_of(expr)
    return numbers is not None and numbers.axis is None


def _tensors(call: relax.Call) -> list[relax.Expr]:
    """Tensor operands, those in tuples too."""
    groups = [arg.fields if isinstance(arg, relax.Tuple) else [arg] for arg in call.args]
    return [item for group in groups for item in group if isinstance(item.ty, relax.TensorType)]
