"""Constant folding with NumPy.

TVM's FoldConstant compiles every constant operation with LLVM and takes most of a compile's time
(docs/adr/0004-own-graph-passes.md); the same arithmetic in NumPy is thousands of times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 and friends with NumPy
import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, static_shape
from workers.graph.rewriter import GraphRewriter

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
    "relax.isnan": _unary(np.isnan),
    "relax.logical_not": _unary(np.logical_not),
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


def evaluate(call: relax.Call) -> Array | None:
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
    with np.errstate(all="ignore"):
        return evaluator([a for a in arrays if a is not None], call)


def _shape_as_constant(call: relax.Call, graph: Graph) -> Array | None:
    """shape_to_tensor(shape_of(x)) of a static x."""
    if call.op.name != "relax.shape_to_tensor":
        return None
    source = call.args[0]
    value = graph.value_of.get(source) if isinstance(source, relax.Var) else source
    ty = source.ty if value is None else value.ty
    dims = ty.values if isinstance(ty, relax.ShapeType) else None
    if dims is None or not all(isinstance(d, int | tvm.tirx.IntImm) for d in dims):
        return None
    return np.array([int(d) for d in dims], np.int64)


def fold_constants(graph: Graph) -> Graph:
    """Compute every operation on constants; what NumPy cannot stays as it is."""

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        value = rewriter.new(binding.value)
        if isinstance(value, relax.Var | tvm.ir.GenericConst):
            return value
        if binding.call is None:
            return None
        array = _shape_as_constant(binding.call, graph)
        if array is None:
            array = _evaluate_typed(value, binding)
        if array is None:
            return None
        return relax.const(np.ascontiguousarray(array))

    return GraphRewriter(graph).run(rule)


def _evaluate_typed(value: relax.Call, binding: Binding) -> Array | None:
    """Evaluate with the old binding's type, which the rebuilt call does not have yet."""
    typed = relax.Call(value.op, value.args, value.attrs, value.ty_args, ret_ty=binding.var.ty)
    array = evaluate(typed)
    if array is None:
        return None
    ty = binding.var.ty
    # NumPy promotes where Relax does not (float32 with a float64 scalar, integer sums).
    return array.astype(str(ty.dtype)) if str(ty.dtype) != array.dtype.name else array
