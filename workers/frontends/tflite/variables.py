"""Variables that only the model's beginning sets: what a model has that was not frozen.

A handle is a constant number, so that it finds its way through loops and calls.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.graph import constant_value


def _var_handle(op: Emitter) -> None:
    names = (op.option("container", None) or b"", op.option("sharedName", None) or b"")
    op.give_raw(relax.const(np.int32(op.variables.handle(names))))


def _call_once(op: Emitter) -> None:
    op.variables.is_beginning = True
    op.inline(op.option("initSubgraphIndex", 0), ())
    op.variables.is_beginning = False


def _assign_variable(op: Emitter) -> None:
    if not op.variables.is_beginning:
        raise op.unsupported("keeps a variable from run to run, which a package cannot")
    op.variables.values[_number(op)] = op.raw(1)


def _read_variable(op: Emitter) -> None:
    value = op.variables.values.get(_number(op))
    if value is None:
        raise op.unsupported("reads a variable that nothing has set")
    op.give_raw(value)


def _number(op: Emitter) -> int:
    known = constant_value(op.raw(0))
    if known is None:
        raise op.unsupported("does not say which variable it means")
    return int(known)


CONVERTERS: Mapping[str, Converter] = {
    "ASSIGN_VARIABLE": _assign_variable,
    "CALL_ONCE": _call_once,
    "READ_VARIABLE": _read_variable,
    "VAR_HANDLE": _var_handle,
}
"""By TFLite operator name."""
