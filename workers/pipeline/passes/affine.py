"""Batch norm and other per-channel scalings folded into the convolution before them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value
from workers.graph.rewriter import GraphRewriter


def absorb_affine(graph: Graph) -> Graph:
    """Fold `conv2d -> multiply/add by a per-channel constant` into the convolution's weights.

    A chain conv, add, multiply, add (bias, then batch norm) ends as conv, add. Only where each
    intermediate value has no other reader.
    """
    last_of_chain = _affine_chains(graph)

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        chain = last_of_chain.get(binding.var)
        if chain is None:
            return None
        conv, scale, shift, origins = chain
        weight = constant_value(conv.args[1])
        assert weight is not None  # _affine_chains took only constant weights
        wide = weight.astype(np.float64) * scale.reshape(-1, 1, 1, 1)
        scaled = wide.astype(weight.dtype)
        new_conv = relax.Call(
            conv.op, [rewriter.new(conv.args[0]), relax.const(scaled)], conv.attrs, conv.ty_args
        )
        out = rewriter.emit(new_conv, origins)
        bias = relax.const(shift.astype(np.float32).reshape(1, -1, 1, 1))
        return rewriter.emit(relax.op.add(out, bias), origins)

    return GraphRewriter(graph).run(rule)


Chain = tuple[relax.Call, NDArray[np.float64], NDArray[np.float64], frozenset[int]]


def _affine_chains(graph: Graph) -> dict[relax.Var, Chain]:
    """Longest affine chain behind each convolution that has a multiplication in it."""
    chains: dict[relax.Var, Chain] = {}
    for binding in graph.bindings:
        call = binding.call
        if call is None or call.op.name != "relax.nn.conv2d":
            continue
        weight = constant_value(call.args[1])
        if weight is None or call.attrs.data_layout != "NCHW" or weight.dtype != np.float32:
            continue
        chain = _follow(graph, binding, call, weight.shape[0])
        if chain is not None:
            chains[chain[0]] = chain[1]
    return chains


def _follow(
    graph: Graph, start: Binding, conv: relax.Call, channels: int
) -> tuple[relax.Var, Chain] | None:
    scale, shift = np.ones(channels), np.zeros(channels)
    current, multiplied = start, False
    origins = graph.origin_of(start.var)
    returned = set(graph.outputs)
    while current.var not in returned:
        readers = graph.users.get(current.var, ())
        if len(readers) != 1 or readers[0].op_name not in ("relax.add", "relax.multiply"):
            break
        operand = _channel_constant(readers[0].value, current.var, channels)
        if operand is None:
            break
        if readers[0].op_name == "relax.multiply":
            scale, shift, multiplied = scale * operand, shift * operand, True
        else:
            shift = shift + operand
        current = readers[0]
        origins |= graph.origin_of(current.var)
    if not multiplied:
        return None
    return current.var, (conv, scale, shift, origins)


def _channel_constant(
    call: relax.Call, data: relax.Var, channels: int
) -> NDArray[np.float64] | None:
    """The constant operand as one value a channel of an NCHW tensor, if it is that."""
    lhs, rhs = call.args
    other = rhs if lhs.same_as(data) else lhs
    array = constant_value(other)
    if array is None or not np.issubdtype(array.dtype, np.floating) or array.ndim > 4:
        return None
    shape = (1,) * (4 - array.ndim) + array.shape
    if shape[1] not in (1, channels) or shape[0] != 1 or shape[2:] != (1, 1):
        return None
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (channels,))
