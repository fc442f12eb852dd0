"""Control flow, as far as it is known when compiling: graphs of the file written in place."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.graph import constant_value, dtype_of

MAX_STEPS = 1024
"""Of a loop; each is written out."""


def _while(op: Emitter) -> None:
    """A loop whose condition is known at each step, written out: what Keras makes of a recurrence.

    The counter begins as a constant and stays one, so that its comparison is one.
    """
    values = [op.raw(position) for position in range(len(op.operator.inputs))]
    condition, body = op.option("condSubgraphIndex", 0), op.option("bodySubgraphIndex", 0)
    for _ in range(MAX_STEPS):
        (goes_on,) = op.inline(condition, values)
        known = constant_value(goes_on)
        if known is None:
            raise op.unsupported("is a loop that runs until computed values end it")
        if not known.item():
            break
        values = op.inline(body, values)
    else:
        raise op.unsupported(f"is a loop of more than {MAX_STEPS} steps")
    for position, value in enumerate(values):
        op.give_raw(value, position)


def _if(op: Emitter) -> None:
    """Both branches are computed, and one is chosen; where it is known which, only that one."""
    arguments = [op.raw(position) for position in range(1, len(op.operator.inputs))]
    branches = (op.option("thenSubgraphIndex", 0), op.option("elseSubgraphIndex", 0))
    condition = op.raw(0)
    known = constant_value(condition)
    if known is not None:
        chosen = op.inline(branches[0 if known.item() else 1], arguments)
    else:
        results = [op.inline(branch, arguments) for branch in branches]
        pairs = zip(*results, strict=True)
        chosen = [_chosen(op, condition, yes, no) for yes, no in pairs]
    for position, value in enumerate(chosen):
        op.give_raw(value, position)


def _chosen(op: Emitter, condition: relax.Expr, yes: relax.Expr, no: relax.Expr) -> relax.Expr:
    if (op.shape_of(yes), dtype_of(yes)) != (op.shape_of(no), dtype_of(no)):
        raise op.unsupported("has branches whose results differ in shape or type")
    return op.emit(relax.op.where(condition, yes, no))


def _called(option: str) -> Converter:
    def convert(op: Emitter) -> None:
        arguments = [op.raw(position) for position in range(len(op.operator.inputs))]
        results = op.inline(op.option(option, 0), arguments)
        for position, value in enumerate(results):
            op.give_raw(value, position)

    return convert


CONVERTERS: Mapping[str, Converter] = {
    "CALL": _called("subgraph"),
    "IF": _if,
    "STABLEHLO_COMPOSITE": _called("decompositionSubgraphIndex"),
    "WHILE": _while,
}
"""By TFLite operator name."""
