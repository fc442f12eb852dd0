"""Operators on tensors of high rank, said of tensors whose axes are joined.

Neighbouring axes that an operator treats alike are one axis to it, axes of one element are none:
a softmax knows what is before its axis, its axis, and what is behind. Each rule gives the operator
on the joined axes; the elements and their order stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

from tvm import relax

from workers.graph.graph import static_shape

Shape = tuple[int, ...]
Groups = Sequence[Sequence[int]]

Reshaped = Callable[[relax.Expr, Shape], relax.Expr]
"""An operand of the old graph as a tensor of another shape, in the new graph."""

Rule = Callable[[relax.Call, Reshaped], "relax.Expr | None"]
"""The operator on joined axes; None where the axes cannot be joined."""


def joined(sizes: Sequence[int], marks: Sequence[Hashable]) -> Groups:
    """Axes in groups: neighbours with the same mark, without the axes of one element."""
    groups: list[list[int]] = []
    for axis, (size, mark) in enumerate(zip(sizes, marks, strict=True)):
        if size == 1:
            continue
        if groups and marks[groups[-1][-1]] == mark:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups or [[0]]


def sizes_of(shape: Sequence[int], groups: Groups) -> Shape:
    """Sizes of the joined axes."""
    return tuple(math.prod(shape[axis] for axis in group) for group in groups)


def _aligned(shape: Sequence[int], rank: int) -> Shape:
    """A shape with the leading ones that broadcasting gives it."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def _known(expr: relax.Expr) -> Shape:
    shape = static_shape(expr)
    if shape is None:
        raise ValueError("the pass asks only about tensors of known shape")
    return shape


def elementwise(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    """Operators on each element by itself, operands broadcast."""
    shape = _known(call)
    operands = [
        _aligned(_known(arg), len(shape)) if isinstance(arg.ty, relax.TensorType) else None
        for arg in call.args
    ]
    marks = [tuple(o is None or o[axis] == 1 for o in operands) for axis in range(len(shape))]
    groups = joined(shape, marks)
    args = [
        arg if operand is None else reshaped(arg, sizes_of(operand, groups))
        for arg, operand in zip(call.args, operands, strict=True)
    ]
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def _broadcast(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    shape = _known(call)
    source = _aligned(_known(call.args[0]), len(shape))
    groups = joined(shape, [size == 1 for size in source])
    data = reshaped(call.args[0], sizes_of(source, groups))
    return relax.op.broadcast_to(data, sizes_of(shape, groups))


def _reduction(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    shape = _known(call.args[0])
    axes = call.attrs.axis
    reduced = {int(a) % len(shape) for a in (range(len(shape)) if axes is None else axes)}
    groups = joined(shape, [axis in reduced for axis in range(len(shape))])
    data = reshaped(call.args[0], sizes_of(shape, groups))
    places = [place for place, group in enumerate(groups) if group[0] in reduced]
    if not places:
        return data  # sums and means of single elements
    function = getattr(relax.op, call.op.name.removeprefix("relax."))
    return function(data, places, True)


def _around(shape: Sequence[int], axis: int) -> Shape:
    """What is before an axis, the axis, and what is behind, if anything."""
    behind = math.prod(shape[axis + 1 :])
    around = (math.prod(shape[:axis]), shape[axis])
    return around if behind == 1 else (*around, behind)


def _concat(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    axis = int(call.attrs.axis or 0) % len(_known(call))
    if not isinstance(call.args[0], relax.Tuple):
        return None
    parts = [reshaped(item, _around(_known(item), axis)) for item in call.args[0].fields]
    return relax.op.concat(parts, 1)


def _along_axis(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    """Softmax and log softmax."""
    shape = _known(call)
    name = call.op.name.removeprefix("relax.nn.")
    data = reshaped(call.args[0], _around(shape, int(call.attrs.axis) % len(shape)))
    return getattr(relax.op.nn, name)(data, 1)


def _take(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    shape, indices = _known(call.args[0]), _known(call.args[1])
    if call.attrs.axis is None:
        return None
    data = reshaped(call.args[0], _around(shape, int(call.attrs.axis) % len(shape)))
    return relax.op.take(data, reshaped(call.args[1], (math.prod(indices),)), 1)


def _numbers(expr: relax.Expr) -> list[int]:
    return [int(getattr(item, "value", item)) for item in expr.fields]


def _slice(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    shape = _known(call.args[0])
    if not all(isinstance(arg, relax.Tuple) for arg in call.args[1:]):
        return None
    axes = [a % len(shape) for a in _numbers(call.args[1])]
    kept = [a for a in axes if shape[a] != 1]
    if len(kept) != len(axes):
        return None  # an axis of one element is sliced, perhaps to nothing
    groups = joined(shape, [axis if axis in axes else -1 for axis in range(len(shape))])
    places = [next(p for p, group in enumerate(groups) if a in group) for a in axes]
    return relax.op.strided_slice(
        reshaped(call.args[0], sizes_of(shape, groups)),
        places,
        *call.args[2:],
        assume_inbound=bool(call.attrs.assume_inbound),
    )


def _pad(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    shape = _known(call.args[0])
    widths = [int(w) for w in call.attrs.pad_width]
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    padded = [axis for axis, pair in enumerate(pairs) if any(pair)]
    if any(shape[axis] == 1 for axis in padded):
        return None
    groups = joined(shape, [axis if axis in padded else -1 for axis in range(len(shape))])
    joined_widths = [width for group in groups for width in pairs[group[0]]]
    data = reshaped(call.args[0], sizes_of(shape, groups))
    return relax.op.nn.pad(data, joined_widths, call.attrs.pad_mode, float(call.attrs.pad_value))


def _matmul(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    """Stacks of matrices: the axes of the stack are joined as those of an operator on elements."""
    left, right, shape = _known(call.args[0]), _known(call.args[1]), _known(call)
    if len(left) < 2 or len(right) < 2:
        return None
    stack = shape[:-2]
    batches = [_aligned(side[:-2], len(stack)) for side in (left, right)]
    groups = joined(stack, [tuple(b[axis] == 1 for b in batches) for axis in range(len(stack))])
    first, second = (sizes_of(batch, groups) for batch in batches)
    if math.prod(second) == 1:
        second = ()  # one matrix for the whole stack
    operands = (
        reshaped(call.args[0], (*first, *left[-2:])),
        reshaped(call.args[1], (*second, *right[-2:])),
    )
    return relax.op.matmul(*operands)


def _layer_norm(call: relax.Call, reshaped: Reshaped) -> relax.Expr | None:
    shape = _known(call.args[0])
    axes = sorted(int(a) % len(shape) for a in call.attrs.axes)
    if axes != list(range(axes[0], len(shape))):
        return None
    size = math.prod(shape[axes[0] :])
    data = reshaped(call.args[0], (math.prod(shape[: axes[0]]), size))
    weights = [reshaped(arg, (size,)) for arg in call.args[1:]]
    function = getattr(relax.op.nn, call.op.name.removeprefix("relax.nn."))
    return function(data, *weights, axes=[-1], epsilon=float(call.attrs.epsilon))


FOLDED: Mapping[str, Rule] = {
    **dict.fromkeys((f"relax.{n}" for n in ("mean", "sum", "prod", "max", "min")), _reduction),
    **dict.fromkeys(("relax.nn.softmax", "relax.nn.log_softmax"), _along_axis),
    **dict.fromkeys(("relax.nn.layer_norm", "relax.nn.rms_norm"), _layer_norm),
    "relax.broadcast_to": _broadcast,
    "relax.concat": _concat,
    "relax.matmul": _matmul,
    "relax.nn.pad": _pad,
    "relax.strided_slice": _slice,
    "relax.take": _take,
}
"""By Relax operator, besides those on single elements."""
