"""Inference-time identities: dropout, batch norm, split, changes of shape only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter
from workers.pipeline.passes.gathers import GATHERS, Rule


def simplify(graph: Graph) -> Graph:
    """Replace operations that only make sense in training or have a plainer equal."""

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        if isinstance(binding.value, relax.TupleGetItem):
            return _tuple_item(rewriter, graph, binding.value)
        call = binding.call
        if call is None:
            return None
        plainer = _RULES.get(call.op.name)
        return None if plainer is None else plainer(rewriter, call)

    return GraphRewriter(graph).run(rule)


def _truth(function: Callable[..., relax.Expr]) -> Rule:
    """Of truth values the bits are the values: NNAPI has the operations on these."""

    def rule(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
        if dtype_of(call) != "bool":
            return None
        return rewriter.emit(function(*(rewriter.new(arg) for arg in call.args)))

    return rule


def _plain_reshape(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """One operation for all that only change the shape; none where the shape stays."""
    shape = static_shape(call)
    if shape is None:
        return None
    source = rewriter.new(call.args[0])
    if static_shape(call.args[0]) == shape:
        return source
    return rewriter.emit(relax.op.reshape(source, shape))


def _plain_broadcast(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """None where the shape stays; of truth values "and true", which broadcasts on accelerators."""
    shape = static_shape(call)
    if shape is None:
        return None
    source = rewriter.new(call.args[0])
    if static_shape(call.args[0]) == shape:
        return source
    if dtype_of(call) != "bool":
        return None
    truth = relax.const(np.ones(shape, bool), "bool")
    return rewriter.emit(relax.op.logical_and(source, truth))


def _joined_stack(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """A stack as a concatenation of tensors with one more axis."""
    items, shape = call.args[0], static_shape(call)
    if not isinstance(items, relax.Tuple) or shape is None:
        return None
    axis = int(call.attrs.axis or 0) % len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    parts = [rewriter.emit(relax.op.reshape(rewriter.new(item), one)) for item in items.fields]
    return rewriter.emit(relax.op.concat(parts, axis))


def _explicit_mean(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    shape = static_shape(call.args[0])
    if shape is None or call.attrs.axis is not None:
        return None
    return rewriter.emit(
        relax.op.mean(
            rewriter.new(call.args[0]), list(range(len(shape))), bool(call.attrs.keepdims)
        )
    )


def _comparison(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """A cast to bool as the comparison it is: NNAPI has that, and TVM no vectors of such casts."""
    dtype = dtype_of(call.args[0])
    if dtype == dtype_of(call):
        return rewriter.new(call.args[0])
    if dtype_of(call) != "bool" or dtype == "":
        return None
    zero = relax.const(np.zeros((), dtype), dtype)
    return rewriter.emit(relax.op.not_equal(rewriter.new(call.args[0]), zero))


def _over_a_part(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """An RMS norm over all axes as that of one row: TVM has no kernel for a root without axes."""
    shape = static_shape(call.args[0])
    if shape is None or len(call.attrs.axes) != len(shape):
        return None
    row = rewriter.emit(relax.op.reshape(rewriter.new(call.args[0]), (1, -1)))
    weight = rewriter.emit(relax.op.reshape(rewriter.new(call.args[1]), (-1,)))
    epsilon = float(call.attrs.epsilon)
    result = rewriter.emit(relax.op.nn.rms_norm(row, weight, [-1], epsilon))
    return rewriter.emit(relax.op.reshape(result, shape))


def _to_one_pixel(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """align_corners to one row or column, where TVM's formula divides by zero: it is the first.

    The axis is cut to one pixel, resized to two equal ones, and cut again.
    """
    attrs, source, target = call.attrs, static_shape(call.args[0]), static_shape(call)
    if attrs.coordinate_transformation_mode != "align_corners" or source is None or target is None:
        return None
    rows = attrs.layout.find("H")
    single = [axis for axis in (rows, rows + 1) if target[axis] == 1]
    if not single:
        return None

    def cut(value: relax.Expr) -> relax.Expr:
        if all((static_shape(value) or ())[axis] == 1 for axis in single):
            return value
        zeros, ones = [0] * len(single), [1] * len(single)
        return rewriter.emit(relax.op.strided_slice(value, single, zeros, ones, ones))

    pixels = cut(rewriter.new(call.args[0]))
    if static_shape(pixels) == target:
        return pixels
    size = relax.ShapeExpr([2 if axis in single else target[axis] for axis in (rows, rows + 1)])
    resized = rewriter.emit(relax.Call(call.op, [pixels, size], attrs, call.ty_args))
    return cut(resized)


def _tuple_item(
    rewriter: GraphRewriter, graph: Graph, item: relax.TupleGetItem
) -> relax.Expr | None:
    producer = item.tuple_value
    value = graph.value_of.get(producer) if isinstance(producer, relax.Var) else producer
    if isinstance(value, relax.Tuple):
        return rewriter.new(value.fields[item.index])
    if not isinstance(value, relax.Call):
        return None
    name = value.op.name
    if name == "relax.nn.dropout" and item.index == 0:
        return rewriter.new(value.args[0])
    if name == "relax.nn.batch_norm" and item.index == 0:
        return _batch_norm(rewriter, value)
    if name == "relax.split":
        return _split_part(rewriter, value, item.index)
    return None


def _batch_norm(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """The input times a scale plus a shift, with the statistics folded into two constants."""
    arrays = [constant_value(arg) for arg in call.args[1:5]]
    rank = len(static_shape(call.args[0]) or ())
    if any(a is None for a in arrays) or not rank:
        return None
    gamma, beta, mean, variance = (a.astype(np.float64) for a in arrays if a is not None)
    scale = gamma / np.sqrt(variance + float(call.attrs.epsilon))
    shift = beta - mean * scale
    shape = [1] * rank
    shape[int(call.attrs.axis)] = -1
    dtype = dtype_of(call.args[0])
    factor, offset = (relax.const(a.reshape(shape).astype(dtype), dtype) for a in (scale, shift))
    scaled = rewriter.emit(relax.op.multiply(rewriter.new(call.args[0]), factor))
    return rewriter.emit(relax.op.add(scaled, offset))


def _split_part(rewriter: GraphRewriter, call: relax.Call, index: int) -> relax.Expr | None:
    """One part of a split as a slice: no tuple is left in the graph."""
    shape = static_shape(call.args[0])
    if shape is None:
        return None
    axis = int(call.attrs.axis) % len(shape)
    sections = call.attrs.indices_or_sections
    if isinstance(sections, int) or not hasattr(sections, "__len__"):
        size = -(-shape[axis] // int(sections))
        cuts = list(range(0, shape[axis], size))
    else:
        cuts = [0, *(int(i) for i in sections)]
    ends = [*cuts[1:], shape[axis]]
    return rewriter.emit(
        relax.op.strided_slice(
            rewriter.new(call.args[0]),
            [axis],
            [cuts[index]],
            [ends[index]],
            [1],
            assume_inbound=True,
        )
    )


_RULES: Mapping[str, Rule] = {
    **GATHERS,
    "relax.astype": _comparison,
    "relax.bitwise_and": _truth(relax.op.logical_and),
    "relax.bitwise_not": _truth(relax.op.logical_not),
    "relax.bitwise_or": _truth(relax.op.logical_or),
    "relax.bitwise_xor": _truth(relax.op.logical_xor),
    "relax.broadcast_to": _plain_broadcast,
    "relax.expand_dims": _plain_reshape,
    "relax.flatten": _plain_reshape,
    "relax.image.resize2d": _to_one_pixel,
    "relax.mean": _explicit_mean,
    "relax.nn.rms_norm": _over_a_part,
    "relax.reshape": _plain_reshape,
    "relax.squeeze": _plain_reshape,
    "relax.stack": _joined_stack,
}
"""By Relax operator."""
