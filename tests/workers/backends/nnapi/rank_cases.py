"""Cases of tensors with more axes than NNAPI has, inside a graph of fewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper

from tests.workers.onnx_models import make_model, weights

Builder = Callable[[], onnx.ModelProto]


def _i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _between(
    shape: Sequence[int],
    high: Sequence[int],
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """tanh, a reshape to many axes, nodes that make "h" into "z", and one axis at the end."""
    whole = [
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node("Reshape", ["t", "high"], ["h"], name="apart"),
        *nodes,
        helper.make_node("Reshape", ["z", "flat"], ["y"], name="flat"),
    ]
    known = {"high": _i64(*high), "flat": _i64(-1), **(constants or {})}
    return make_model(whole, {"x": list(shape)}, ["y"], known)


def _one(op: str, constants: dict[str, np.ndarray] | None = None, **attributes: object) -> Builder:
    def build() -> onnx.ModelProto:
        node = helper.make_node(op, ["h", *(constants or {})], ["z"], name=op.lower(), **attributes)
        return _between([4, 6, 20], [2, 2, 3, 2, 20], [node], constants)

    return build


def _attention_of_windows() -> onnx.ModelProto:
    """[windows, tokens, 3 * heads * size] to queries and keys [windows, heads, tokens, size]."""
    nodes = [
        helper.make_node("Transpose", ["h"], ["p"], name="swap", perm=[2, 0, 3, 1, 4]),
        *(
            node
            for index, name in enumerate(("q", "k"))
            for node in (helper.make_node("Gather", ["p", f"i{index}"], [name], name=name, axis=0),)
        ),
        helper.make_node("Transpose", ["k"], ["kt"], name="turn", perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["z"], name="product"),
    ]
    numbers = {"i0": np.array(0, np.int64), "i1": np.array(1, np.int64)}
    return _between([4, 5, 18], [4, 5, 3, 2, 3], nodes, numbers)


def _repeated_heads() -> onnx.ModelProto:
    """Each head of the keys twice: grouped queries."""
    shape = {"s": _i64(2, 3, 2, 4, 5)}
    nodes = [helper.make_node("Expand", ["h", "s"], ["z"], name="expand")]
    return _between([2, 3, 4, 5], [2, 3, 1, 4, 5], nodes, shape)


def _masked() -> onnx.ModelProto:
    """Windows' scores plus a mask for each window, the same for all images and heads."""
    nodes = [
        helper.make_node("Add", ["h", "m"], ["a"], name="add"),
        helper.make_node("Softmax", ["a"], ["z"], name="softmax", axis=-1),
    ]
    return _between([6, 2, 4, 4], [2, 3, 2, 4, 4], nodes, {"m": weights(1, 3, 1, 4, 4)})


def _products() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["h", "w"], ["z"], name="product")]
    return _between([6, 2, 4, 5], [2, 3, 2, 4, 5], nodes, {"w": weights(5, 3)})


RANKS: dict[str, tuple[int, Builder]] = {
    "rank_windows": (2, _attention_of_windows),
    "rank_expand": (1, _repeated_heads),
    "rank_masked_softmax": (1, _masked),
    "rank_products": (1, _products),
    "rank_mean": (1, _one("ReduceMean", axes=[1, 2], keepdims=1)),
    "rank_max_of_neighbours": (3, _one("ReduceMax", axes=[2, 3], keepdims=0)),
    "rank_slice": (
        1,
        _one("Slice", {"b": _i64(1, 0), "e": _i64(3, 9), "a": _i64(2, 4), "s": _i64(1, 2)}),
    ),
    "rank_pad": (2, _one("Pad", {"p": _i64(0, 1, 0, 0, 2, 0, 0, 0, 0, 1)})),
    "rank_take": (3, _one("Gather", {"i": _i64(2, 0, 1)}, axis=2)),
}
"""Least level and model, by name."""
