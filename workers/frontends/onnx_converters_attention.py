"""ONNX's Attention and RotaryEmbedding (operator set 23), as products, a softmax and rotations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, operand
from workers.graph.graph import dtype_of, static_shape

_MASKED = -1e9
"""Added where nothing may be looked at; exp of it is 0 and, unlike -inf, it has no NaN in it."""

_ATTRIBUTES = {
    *("is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode"),
    *("scale", "softcap", "softmax_precision", "tvm_custom"),
}
"""Of operator sets 23 and 24; what later ones add changes the result."""


def _attention(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """softmax(scale * Q K^T + mask) V, heads shared by groups of queries."""
    if "num_heads" in attrs:
        return None  # the operation of the same name in com.microsoft
    _check(inputs, attrs)
    query = _heads(inputs[0], attrs.get("q_num_heads"), scope)
    key = _heads(inputs[1], attrs.get("kv_num_heads"), scope)
    value = _heads(inputs[2], attrs.get("kv_num_heads"), scope)
    batch, heads, length, size = static_shape(query) or (0, 0, 0, 0)
    earlier = operand(inputs, 4)
    past = 0 if earlier is None else (static_shape(earlier) or (0, 0, 0))[2]
    present = _with_past(inputs, 4, key, scope), _with_past(inputs, 5, value, scope)
    key, value = (repeated(x, heads, scope) for x in present)
    scale = attrs.get("scale") or 1 / math.sqrt(size)
    scaled = scope.emit(relax.op.multiply(query, relax.const(scale, dtype_of(query))))
    turned = scope.emit(relax.op.permute_dims(key, [0, 1, 3, 2]))
    scores = scope.emit(relax.op.matmul(scaled, turned))
    if softcap := attrs.get("softcap", 0.0):
        cap = relax.const(softcap, dtype_of(query))
        bounded = scope.emit(relax.op.tanh(scope.emit(relax.op.divide(scores, cap))))
        scores = scope.emit(relax.op.multiply(bounded, cap))
    is_causal = bool(attrs.get("is_causal", 0))
    scores = _masked(scores, operand(inputs, 3), is_causal, past, scope)
    weights = scope.emit(relax.op.nn.softmax(scores, -1))
    result = scope.emit(relax.op.matmul(weights, value))
    if len(static_shape(inputs[0]) or ()) == 3:
        result = scope.emit(relax.op.permute_dims(result, [0, 2, 1, 3]))
        result = scope.emit(relax.op.reshape(result, (batch, length, -1)))
    return relax.Tuple([result, *present])


def _check(inputs: Inputs, attrs: dict[str, Any]) -> None:
    if unknown := sorted(set(attrs) - _ATTRIBUTES):
        raise ValueError(f"the attribute {unknown[0]!r} is not supported")
    if any(static_shape(inputs[at]) is None for at in range(3)):
        raise ValueError("queries, keys and values need known shapes")
    if operand(inputs, 6) is not None:
        raise ValueError("numbers of keys that are no padding are not supported")
    if attrs.get("tvm_custom", {}).get("num_outputs", 1) > 3:
        raise ValueError("scores as an output are not supported")


def _with_past(inputs: Inputs, at: int, new: relax.Expr, scope: Scope) -> relax.Expr:
    """Keys or values of earlier steps, where there are some, before the new ones."""
    past = operand(inputs, at)
    return new if past is None else scope.emit(relax.op.concat([past, new], 2))


def _heads(data: relax.Expr | None, heads: int | None, scope: Scope) -> relax.Expr:
    """[batch, heads, length, size], from that or from [batch, length, heads * size]."""
    shape = static_shape(data) or ()
    if len(shape) == 4:
        return data
    if len(shape) != 3 or not heads:
        raise ValueError("tensors of rank 3 need q_num_heads and kv_num_heads")
    batch, length, hidden = shape
    apart = scope.emit(relax.op.reshape(data, (batch, length, heads, hidden // heads)))
    return scope.emit(relax.op.permute_dims(apart, [0, 2, 1, 3]))


def repeated(data: relax.Expr, heads: int, scope: Scope) -> relax.Expr:
    """Each head of keys or values as often as queries share it."""
    batch, own, length, size = static_shape(data) or (0, 0, 0, 0)
    if own == heads:
        return data
    apart = scope.emit(relax.op.reshape(data, (batch, own, 1, length, size)))
    wide = scope.emit(relax.op.broadcast_to(apart, (batch, own, heads // own, length, size)))
    return scope.emit(relax.op.reshape(wide, (batch, heads, length, size)))


def _masked(
    scores: relax.Expr, mask: relax.Expr | None, is_causal: bool, past: int, scope: Scope
) -> relax.Expr:
    dtype = dtype_of(scores)
    if is_causal:
        *_, rows, columns = static_shape(scores) or (0, 0)
        later = np.triu(np.full((rows, columns), _MASKED), past + 1).astype(dtype)
        scores = scope.emit(relax.op.add(scores, relax.const(later)))
    if mask is None:
        return scores
    if dtype_of(mask) == "bool":
        zero, low = relax.const(0.0, dtype), relax.const(_MASKED, dtype)
        mask = scope.emit(relax.op.where(mask, zero, low))
    return scope.emit(relax.op.add(scores, mask))


def _rotary(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Pairs of a head's values, halves or neighbours, turned by the angle of their position."""
    shape = static_shape(inputs[0])
    if shape is None or "scale" in attrs:
        return None
    if attrs.get("rotary_embedding_dim", 0) or attrs.get("interleaved", 0):
        raise ValueError("partial and interleaved rotations are not supported")
    data = _heads(inputs[0], attrs.get("num_heads"), scope)
    cosines, sines = (_angles(inputs, at, scope) for at in (1, 2))
    halves = scope.emit(relax.op.split(data, 2, -1))
    first, second = (scope.emit(relax.TupleGetItem(halves, index)) for index in range(2))

    def turned(a: relax.Expr, b: relax.Expr, join: Any) -> relax.Expr:
        left = scope.emit(relax.op.multiply(a, cosines))
        return scope.emit(join(left, scope.emit(relax.op.multiply(b, sines))))

    parts = [turned(first, second, relax.op.subtract), turned(second, first, relax.op.add)]
    result = scope.emit(relax.op.concat(parts, -1))
    if len(shape) == 4:
        return result
    result = scope.emit(relax.op.permute_dims(result, [0, 2, 1, 3]))
    return relax.op.reshape(result, shape)


def _angles(inputs: Inputs, at: int, scope: Scope) -> relax.Expr:
    """Cosines or sines of each position, [batch, 1, length, size / 2]."""
    table, positions = inputs[at], operand(inputs, 3)
    if positions is not None:
        rows = constant(inputs, 3)
        index = positions if rows is None else relax.const(rows.astype(np.int32))
        table = scope.emit(relax.op.take(table, index, 0))
    shape = static_shape(table)
    if shape is None or len(shape) != 3:
        raise ValueError("the table of angles needs a known shape")
    return scope.emit(relax.op.reshape(table, (shape[0], 1, *shape[1:])))


CONVERTERS: dict[str, Converter] = {"Attention": _attention, "RotaryEmbedding": _rotary}
"""By ONNX operation name."""
