"""What the operations of a graph cost: multiply-accumulates and bytes, from shapes alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.recurrence.layer import recurrence_of


@dataclass(frozen=True)
class Cost:
    """Of one inference.

    Attributes:
        macs: multiply-accumulates of convolutions and matrix products.
        size_bytes: of tensors read and written, constants included.
    """

    macs: int = 0
    size_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.macs + other.macs, self.size_bytes + other.size_bytes)


def costs_of(graph: Graph) -> Mapping[int, Cost]:
    """Cost of each original node, by index; folded ones are not in it.

    What several nodes became together counts for the first of them.
    """
    found: dict[int, Cost] = {}
    for binding in graph.bindings:
        origins = graph.origin_of(binding.var)
        if binding.call is not None and origins:
            first = min(origins)
            found[first] = found.get(first, Cost()) + cost_of(binding)
    return found


def cost_of(binding: Binding) -> Cost:
    """Cost of one call; 0 where a shape is open."""
    call = binding.call
    if call is None:
        return Cost()
    count = _MACS.get(call.op.name)
    tensors = [call, *(t for arg in call.args for t in _tensors(arg))]
    return Cost(0 if count is None else count(call), sum(_size_bytes(t) for t in tensors))


def _tensors(expr: relax.Expr) -> Iterable[relax.Expr]:
    if isinstance(expr, relax.Tuple):
        for item in expr.fields:
            yield from _tensors(item)
    elif isinstance(expr.ty, relax.TensorType):
        yield expr


def _size_bytes(expr: relax.Expr) -> int:
    array = constant_value(expr)
    if array is not None:
        return int(array.nbytes)
    shape, dtype = static_shape(expr), dtype_of(expr)
    if shape is None or not dtype:
        return 0
    return math.prod(shape) * (1 if dtype == "bool" else np.dtype(dtype).itemsize)


def _elements(expr: relax.Expr) -> int:
    shape = static_shape(expr)
    return 0 if shape is None else math.prod(shape)


def _convolution(call: relax.Call) -> int:
    """Outputs times the window's taps: the kernel without its output axis."""
    weight = static_shape(call.args[1])
    if weight is None:
        return 0
    channels = weight[str(call.attrs.kernel_layout).index("O")]
    return _elements(call) * math.prod(weight) // max(channels, 1)


def _transposed_convolution(call: relax.Call) -> int:
    """Inputs times the window's taps: the kernel without its input axis."""
    weight = static_shape(call.args[1])
    if weight is None:
        return 0
    channels = weight[str(call.attrs.kernel_layout).index("I")]
    return _elements(call.args[0]) * math.prod(weight) // max(channels, 1)


def _matmul(call: relax.Call) -> int:
    shape = static_shape(call.args[0])
    return _elements(call) * (shape[-1] if shape else 0)


def _recurrence(call: relax.Call) -> int:
    """Every step multiplies all matrices that the layer has."""
    recurrence = recurrence_of(call)
    if recurrence is None:
        return 0
    weights = [one for name, one in recurrence.operands.items() if name.endswith("_weights")]
    matrices = [shape for one in weights if len(shape := static_shape(one) or ()) == 2]
    return recurrence.steps * recurrence.batch * sum(map(math.prod, matrices))


_MACS: Mapping[str, Callable[[relax.Call], int]] = {
    "relax.call_dps_packed": _recurrence,
    "relax.nn.conv1d": _convolution,
    "relax.nn.conv2d": _convolution,
    "relax.nn.conv3d": _convolution,
    "relax.nn.conv1d_transpose": _transposed_convolution,
    "relax.nn.conv2d_transpose": _transposed_convolution,
    "relax.nn.conv3d_transpose": _transposed_convolution,
    "relax.matmul": _matmul,
}
