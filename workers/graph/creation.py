"""Values of operations that make tensors of nothing but numbers: fills, ranges, shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value, static_shape

Array = NDArray[Any]


def created(call: relax.Call) -> Array | None:
    """The value of a call that reads no other tensor's elements, None where it is another one."""
    create = _CREATORS.get(call.op.name)
    return None if create is None else create(call)


def _filled(number: float) -> Callable[[relax.Call], Array | None]:
    def create(call: relax.Call) -> Array | None:
        shape = static_shape(call)
        return None if shape is None else np.full(shape, number, str(call.ty.dtype))

    return create


def _full(call: relax.Call) -> Array | None:
    shape, value = static_shape(call), constant_value(call.args[1])
    if shape is None or value is None:
        return None
    return np.full(shape, value.reshape(-1)[0])


def _counted(call: relax.Call) -> Array | None:
    """A range, by its first number, its step and the length Relax gives it."""
    shape = static_shape(call)
    numbers = [getattr(argument, "value", None) for argument in call.args[:3]]
    known = [number for number in numbers if isinstance(number, int | float)]
    if shape is None or len(known) != 3:
        return None
    return np.asarray(known[0] + np.arange(shape[0]) * known[2])


def _shape(call: relax.Call) -> Array | None:
    """shape_to_tensor of a shape that is known."""
    ty = call.args[0].ty
    dims = ty.values if isinstance(ty, relax.ShapeType) else None
    if dims is None or not all(isinstance(d, int | tvm.tirx.IntImm) for d in dims):
        return None
    return np.array([int(d) for d in dims], np.int64)


_CREATORS: Mapping[str, Callable[[relax.Call], Array | None]] = {
    "relax.arange": _counted,
    "relax.full": _full,
    "relax.full_like": _full,
    "relax.ones": _filled(1),
    "relax.ones_like": _filled(1),
    "relax.shape_to_tensor": _shape,
    "relax.zeros": _filled(0),
    "relax.zeros_like": _filled(0),
}
"""By operation; the result's type has its shape and its elements' type."""
