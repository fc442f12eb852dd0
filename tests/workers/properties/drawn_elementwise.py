"""Drawn element-wise operations, reductions and products."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
from onnx import TensorProto

from tests.workers.properties.drawing import Drawing

_UNARY = (
    *("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Sin", "Erf", "HardSwish", "HardSigmoid"),
    *("Elu", "LeakyRelu", "Softplus", "Softsign", "Selu"),
)
_STEPS = ("Floor", "Ceil", "Round", "Sign")
_POSITIVE = ("Log", "Sqrt", "Reciprocal")
_COMPARISONS = ("Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual")
_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2")
AXES_ARE_INPUTS = 18  # for all reductions; ReduceSum's since 13
GELU = 20


def _above_zero(d: Drawing, name: str) -> str:
    (magnitude,) = d.node("Abs", [name])
    (sum_,) = d.node("Add", [magnitude, d.constant(np.float32(0.5))])
    return sum_


def unary(d: Drawing) -> None:
    name, _ = d.pick()
    d.keep(*d.node(d.draw(st.sampled_from(_UNARY)), [name]))


def step(d: Drawing) -> None:
    name, _ = d.pick_exact()
    d.keep(*d.node(d.draw(st.sampled_from(_STEPS)), [name]))


def positive_unary(d: Drawing) -> None:
    name, _ = d.pick()
    d.keep(*d.node(d.draw(st.sampled_from(_POSITIVE)), [_above_zero(d, name)]))


def gelu(d: Drawing) -> None:
    name, _ = d.pick()
    if d.opset >= GELU:
        kind = d.draw(st.sampled_from(("none", "tanh")))
        d.keep(*d.node("Gelu", [name], approximate=kind))
        return
    (scaled,) = d.node("Div", [name, d.constant(np.float32(np.sqrt(2)))])
    (error,) = d.node("Erf", [scaled])
    (shifted,) = d.node("Add", [error, d.constant(np.float32(1))])
    (product,) = d.node("Mul", [name, shifted])
    d.keep(*d.node("Mul", [product, d.constant(np.float32(0.5))]))


def clip(d: Drawing) -> None:
    name, _ = d.pick()
    low, high = d.draw(st.sampled_from(((0, 6), (-1, 1), (-0.5, 0.25), (0, None), (None, 1))))
    ends = ["" if end is None else d.constant(np.float32(end)) for end in (low, high)]
    d.keep(*d.node("Clip", [name, *ends]))


def _second(d: Drawing, name: str, shape: Sequence[int]) -> str:
    """An operand that broadcasts: the same value, another input, or a constant."""
    kind = d.draw(st.sampled_from(("self", "input", "constant", "scalar")))
    if kind == "self":
        return name
    if kind == "scalar":
        return d.constant(np.float32(1.5))
    other = [1 if d.draw(st.booleans()) else n for n in shape]
    other = other[d.draw(st.integers(0, len(other))) :]
    return d.input(other) if kind == "input" and other else d.weights(*other)


def binary(d: Drawing) -> None:
    name, shape = d.pick()
    op = d.draw(st.sampled_from(("Add", "Sub", "Mul", "Min", "Max", "Div", "Pow", "PRelu")))
    second = _second(d, name, shape)
    if op == "Pow":
        names = [_above_zero(d, name), second]
    elif op == "Div":
        names = [name, _above_zero(d, second)]
    elif op == "PRelu":
        names = [name, d.weights(*shape[-1:])]
    else:
        names = [name, second]
        if op != "PRelu" and d.draw(st.booleans()):
            names.reverse()
    d.keep(*d.node(op, names))


def select(d: Drawing) -> None:
    name, shape = d.pick_exact()
    second = _second(d, name, shape)
    (mask,) = d.node(d.draw(st.sampled_from(_COMPARISONS)), [name, second])
    if d.draw(st.booleans()):
        (mask,) = d.node("Not", [mask])
    if d.draw(st.booleans()):
        (other,) = d.node("Less", [name, d.constant(np.float32(0.3))])
        (mask,) = d.node(d.draw(st.sampled_from(("And", "Or", "Xor"))), [mask, other])
    if d.draw(st.booleans()):
        d.keep(*d.node("Cast", [mask], to=TensorProto.FLOAT))
    else:
        d.keep(*d.node("Where", [mask, name, second]))


def cast(d: Drawing) -> None:
    name, _ = d.pick_exact()
    (whole,) = d.node("Cast", [name], to=d.draw(st.sampled_from((6, 7, 9))))
    d.keep(*d.node("Cast", [whole], to=TensorProto.FLOAT))


def reduction(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    op = d.draw(st.sampled_from(_REDUCTIONS))
    rank = len(shape)
    axes = sorted(d.draw(st.sets(st.integers(0, rank - 1), max_size=rank)))
    axes = [a - rank if d.draw(st.booleans()) else a for a in axes]
    keep = d.draw(st.integers(0, 1))
    if not axes:
        d.keep(*d.node(op, [name], keepdims=keep))
    elif d.opset >= AXES_ARE_INPUTS or op == "ReduceSum":
        d.keep(*d.node(op, [name, d.int64(*axes)], keepdims=keep))
    else:
        d.keep(*d.node(op, [name], keepdims=keep, axes=axes))


def softmax(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    axis = d.draw(st.integers(-len(shape), len(shape) - 1))
    d.keep(*d.node(d.draw(st.sampled_from(("Softmax", "LogSoftmax"))), [name], axis=axis))


def arg(d: Drawing) -> None:
    name, shape = d.pick_exact(1, 2, 3, 4)
    axis = d.draw(st.integers(-len(shape), len(shape) - 1))
    op = d.draw(st.sampled_from(("ArgMax", "ArgMin")))
    (index,) = d.node(op, [name], axis=axis, keepdims=d.draw(st.integers(0, 1)))
    d.keep(*d.node("Cast", [index], to=TensorProto.FLOAT))


def gemm(d: Drawing) -> None:
    name, (rows, columns) = d.pick(2)
    out = d.draw(st.integers(1, 5))
    flipped, turned = d.draw(st.integers(0, 1)), d.draw(st.integers(0, 1))
    inner, left = (rows, columns) if flipped else (columns, rows)
    names = [name, d.weights(*((out, inner) if turned else (inner, out)))]
    bias = d.draw(st.sampled_from(((), (out,), (1, out), (left, 1), (left, out), (1,))))
    if bias:
        names.append(d.weights(*bias))
    alpha, beta = d.draw(st.sampled_from(((1.0, 1.0), (0.5, 1.0), (1.0, 2.0))))
    d.keep(*d.node("Gemm", names, transA=flipped, transB=turned, alpha=alpha, beta=beta))


def matmul(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    out = d.draw(st.integers(1, 5))
    batch = [1 if d.draw(st.booleans()) else n for n in shape[:-2]]
    batch = batch[d.draw(st.integers(0, len(batch))) :]
    other = [*batch, shape[-1], out]
    second = d.input(other) if d.draw(st.booleans()) else d.weights(*other)
    d.keep(*d.node("MatMul", [name, second]))


def layer_norm(d: Drawing) -> None:
    name, shape = d.pick(2, 3)
    if shape[-1] < 4:
        return  # a variance of nearly nothing magnifies what is rounded
    if d.opset >= 17:
        d.keep(*d.node("LayerNormalization", [name, d.weights(shape[-1]), d.weights(shape[-1])]))


ELEMENTWISE = (
    *(unary, step, positive_unary, gelu, clip, binary, select, cast, reduction, softmax, arg),
    *(gemm, matmul, layer_norm),
)
