"""Values of operations on constants, with NumPy.

TVM's FoldConstant compiles every constant operation with LLVM and takes most of a compile's time
(docs/adr/0004-own-graph-passes.md); the same arithmetic in NumPy is thousands of times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 and friends with NumPy
import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.creation import created
from workers.graph.graph import constant_value, static_shape
from workers.graph.quantization import quantization_of

Array = NDArray[Any]
Evaluate = Callable[[Sequence[Array], relax.Call], Array]


def _result_shape(call: relax.Call) -> tuple[int, ...]:
    shape = static_shape(call)
    if shape is None:
        raise ValueError("the result has no static shape")
    return shape


def _binary(function: Callable[[Array, Array], Array]) -> Evaluate:
    return lambda arrays, _: function(arrays[0], arrays[1])


def _unary(function: Callable[[Array], Array]) -> Evaluate:
    return lambda arrays, _: function(arrays[0])


def _divide(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.integer):
        quotient: Array = np.trunc(np.true_divide(a, b)).astype(a.dtype)
        return quotient
    result: Array = np.divide(a, b)
    return result


def _axes(call: relax.Call) -> tuple[int, ...] | None:
    return None if call.attrs.axis is None else tuple(int(a) for a in call.attrs.axis)


def _take(arrays: Sequence[Array], call: relax.Call) -> Array:
    axis = None if call.attrs.axis is None else int(call.attrs.axis)
    return np.take(arrays[0], arrays[1], axis=axis, mode="wrap")


def _scatter(arrays: Sequence[Array], call: relax.Call) -> Array:
    if call.attrs.reduction != "update":
        raise ValueError(f"scatter with {call.attrs.reduction}")  # stays an operation
    data, indices, updates = arrays
    result: Array = data.copy()
    np.put_along_axis(result, indices, updates, axis=int(call.attrs.axis))
    return result


def _gather_nd(arrays: Sequence[Array], call: relax.Call) -> Array:
    if int(call.attrs.batch_dims):
        raise ValueError("a batch of its own")  # stays an operation
    data, indices = arrays
    result: Array = data[tuple(np.moveaxis(indices, -1, 0))]
    return result


def _scatter_nd(arrays: Sequence[Array], call: relax.Call) -> Array:
    if call.attrs.reduction != "update":
        raise ValueError(f"scatter with {call.attrs.reduction}")  # stays an operation
    data, indices, updates = arrays
    result: Array = data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


def _slice(arrays: Sequence[Array], call: relax.Call) -> Array:
    axes, *bounds = ([int(i) for i in arg.fields] for arg in call.args[1:])
    strides = bounds[2] if len(bounds) > 2 else [1] * len(axes)
    result: Array = arrays[0]
    for axis, begin, end, stride in zip(axes, bounds[0], bounds[1], strides, strict=True):
        length = result.shape[axis]
        if stride > 0:
            places = range(length)[begin:end:stride]
        else:  # an end before the first element is -1 here, and the last element in NumPy
            first, last = (n + length if n < 0 else n for n in (begin, end))
            places = range(min(first, length - 1), max(last, -1), stride)
        result = np.take(result, np.array(places, np.int64), axis)
    return result


def _cumulative_sum(arrays: Sequence[Array], call: relax.Call) -> Array:
    if call.attrs.axis is None or call.attrs.exclusive:
        raise ValueError("over all elements, or without the own one")  # stays an operation
    return np.cumsum(arrays[0], axis=int(call.attrs.axis))


def _clip(arrays: Sequence[Array], call: relax.Call) -> Array:
    low, high = (float(getattr(bound, "value", bound)) for bound in call.args[1:3])
    result: Array = arrays[0].copy()
    result[result < low] = low
    result[result > high] = high
    return result


def _quantize(arrays: Sequence[Array], call: relax.Call) -> Array:
    numbers = quantization_of(call)
    if numbers is None:
        raise ValueError("the scale is not constant")
    return numbers.quantize(arrays[0])


_EVALUATORS: dict[str, Evaluate] = {
    "relax.add": _binary(np.add),
    "relax.subtract": _binary(np.subtract),
    "relax.multiply": _binary(np.multiply),
    "relax.divide": _binary(_divide),
    "relax.power": _binary(np.power),
    "relax.maximum": _binary(np.maximum),
    "relax.minimum": _binary(np.minimum),
    "relax.less": _binary(np.less),
    "relax.greater": _binary(np.greater),
    "relax.equal": _binary(np.equal),
    "relax.negative": _unary(np.negative),
    "relax.abs": _unary(np.abs),
    "relax.sqrt": _unary(np.sqrt),
    "relax.rsqrt": _unary(lambda a: 1 / np.sqrt(a)),
    "relax.exp": _unary(np.exp),
    "relax.log": _unary(np.log),
    "relax.floor": _unary(np.floor),
    "relax.ceil": _unary(np.ceil),
    "relax.round": _unary(np.round),
    "relax.sign": _unary(np.sign),
    "relax.square": _unary(np.square),
    "relax.sin": _unary(np.sin),
    "relax.cos": _unary(np.cos),
    "relax.tanh": _unary(np.tanh),
    "relax.sigmoid": _unary(lambda a: 1 / (1 + np.exp(-a))),
    "relax.nn.relu": _unary(lambda a: np.maximum(a, 0)),
    "relax.isnan": _unary(np.isnan),
    "relax.logical_not": _unary(np.logical_not),
    "relax.clip": _clip,
    "relax.where": lambda arrays, _: np.where(arrays[0], arrays[1], arrays[2]),
    "relax.astype": lambda arrays, call: arrays[0].astype(str(call.attrs.dtype)),
    "relax.reshape": lambda arrays, call: arrays[0].reshape(_result_shape(call)),
    "relax.squeeze": lambda arrays, call: arrays[0].reshape(_result_shape(call)),
    "relax.expand_dims": lambda arrays, call: arrays[0].reshape(_result_shape(call)),
    "relax.flatten": lambda arrays, call: arrays[0].reshape(_result_shape(call)),
    "relax.broadcast_to": lambda arrays, call: np.broadcast_to(arrays[0], _result_shape(call)),
    "relax.permute_dims": lambda arrays, call: np.transpose(
        arrays[0], None if call.attrs.axes is None else [int(a) for a in call.attrs.axes]
    ),
    "relax.take": _take,
    "relax.scatter_elements": _scatter,
    "relax.scatter_nd": _scatter_nd,
    "relax.gather_elements": lambda arrays, call: np.take_along_axis(
        arrays[0], arrays[1], axis=int(call.attrs.axis)
    ),
    "relax.gather_nd": _gather_nd,
    "relax.strided_slice": _slice,
    "relax.tile": lambda arrays, call: np.tile(arrays[0], [int(r) for r in call.attrs.repeats]),
    "relax.flip": lambda arrays, call: np.flip(arrays[0], axis=int(call.attrs.axis)),
    "relax.triu": lambda arrays, call: np.triu(arrays[0], int(call.args[1])),
    "relax.tril": lambda arrays, call: np.tril(arrays[0], int(call.args[1])),
    "relax.matmul": _binary(np.matmul),
    "relax.cumsum": _cumulative_sum,
    "relax.max": lambda arrays, call: np.max(
        arrays[0], axis=_axes(call), keepdims=bool(call.attrs.keepdims)
    ),
    "relax.min": lambda arrays, call: np.min(
        arrays[0], axis=_axes(call), keepdims=bool(call.attrs.keepdims)
    ),
    # Not dequantize: a quantized model's weights stay the integers they are.
    "relax.quantize": _quantize,
    "relax.floor_divide": _binary(np.floor_divide),
    "relax.floor_mod": _binary(np.mod),
    "relax.mod": _binary(np.fmod),
    "relax.trunc": _unary(np.trunc),
    "relax.greater_equal": _binary(np.greater_equal),
    "relax.less_equal": _binary(np.less_equal),
    "relax.not_equal": _binary(np.not_equal),
    "relax.logical_and": _binary(np.logical_and),
    "relax.logical_or": _binary(np.logical_or),
    "relax.sum": lambda arrays, call: np.sum(
        arrays[0], axis=_axes(call), keepdims=bool(call.attrs.keepdims)
    ),
    "relax.mean": lambda arrays, call: np.mean(
        arrays[0], axis=_axes(call), keepdims=bool(call.attrs.keepdims)
    ),
    "relax.prod": lambda arrays, call: np.prod(
        arrays[0], axis=_axes(call), keepdims=bool(call.attrs.keepdims)
    ),
}


def _tensors(exprs: Sequence[relax.Expr]) -> list[relax.Expr]:
    return [e for e in exprs if isinstance(e.ty, relax.TensorType)]


def _evaluate(call: relax.Call) -> Array | None:
    """The value of a call whose tensor arguments are all constants, None where it is not one."""
    if call.op.name == "relax.concat" and isinstance(call.args[0], relax.Tuple):
        parts = [constant_value(item) for item in call.args[0].fields]
        if any(part is None for part in parts):
            return None
        return np.concatenate([p for p in parts if p is not None], axis=int(call.attrs.axis or 0))
    evaluator = _EVALUATORS.get(call.op.name)
    if evaluator is None:
        return None
    arrays = [constant_value(arg) for arg in _tensors(call.args)]
    if not arrays or any(a is None for a in arrays):
        return None
    try:
        with np.errstate(all="ignore"):
            return evaluator([a for a in arrays if a is not None], call)
    except ValueError:
        return None  # not static, or not a case NumPy has: it stays an operation


def value_of_call(call: relax.Call) -> Array | None:
    """The value of a call that is known now, in the element type Relax gives it.

    Args:
        call: with its type.

    Returns:
        None where an operand is not constant, or NumPy has no such operation.
    """
    array = created(call)
    if array is None:
        array = _evaluate(call)
    if array is None:
        return None
    # NumPy promotes where Relax does not (float32 with a float64 scalar, integer sums).
    dtype = str(call.ty.dtype)
    return array.astype(dtype) if dtype != array.dtype.name else array
