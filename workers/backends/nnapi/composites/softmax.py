"""SOFTMAX over an inner axis, which came with level 3, between two transposes."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.graph.graph import dtype_of, static_shape
from workers.graph.quantization import DEQUANTIZE

_AXIS_LEVEL = 3
"""Of the operation's role that names another axis than the last."""


def _softmax(place: Place, call: relax.Call) -> relax.Expr | None:
    """The axis swapped with the last one, there and back."""
    shape = static_shape(call)
    if shape is None or place.level >= _AXIS_LEVEL or dtype_of(call) != "float32":
        return None
    axis, last = int(call.attrs.axis) % len(shape), len(shape) - 1
    if axis == last or place.producer(call.args[0], DEQUANTIZE) is not None:
        return None
    order = list(range(len(shape)))
    order[axis], order[last] = last, axis
    turned = place.emit(relax.op.permute_dims(place.new(call.args[0]), order))
    return place.emit(relax.op.permute_dims(place.emit(relax.op.nn.softmax(turned, -1)), order))


COMPOSITES: Mapping[str, Composite] = {"relax.nn.softmax": _softmax}
