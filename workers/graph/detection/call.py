"""The call of a TIR function with four results.

What greedy suppression does cannot be written with Relax's operators. The call carries its rules,
so that an accelerator that has the operation finds them.
"""

from __future__ import annotations

from dataclasses import asdict, fields

import tvm
from tvm import relax

from workers.graph.detection.rules import DetectionRules

_NAME = "detections"


def detections(
    function: tvm.ir.GlobalVar,
    rules: DetectionRules,
    deltas: relax.Expr,
    scores: relax.Expr,
    anchors: relax.Expr,
) -> relax.Call:
    """The call.

    Args:
        function: what `kernel_of` made, in the module.
        rules: the same.
        deltas: float32 [1, boxes, coordinates]: row, column, height, width.
        scores: float32 [1, boxes, columns].
        anchors: float32 [boxes, 4]: the same four.

    Returns:
        A tuple of boxes float32 [1, slots, 4] (top, left, bottom, right), classes int32
        [1, slots], scores float32 [1, slots], their number int32 [1]; zeros after the last.
    """
    slots = rules.slots
    results = [
        relax.TensorType((1, slots, 4), "float32"),
        relax.TensorType((1, slots), "int32"),
        relax.TensorType((1, slots), "float32"),
        relax.TensorType((1,), "int32"),
    ]
    call = relax.call_tir(function, relax.Tuple([deltas, scores, anchors]), results)
    attrs = tvm.ir.make_node("ir.DictAttrs", kind=_NAME, **asdict(rules))
    return relax.Call(call.op, call.args, attrs, call.ty_args)


def rules_of(expr: relax.Expr) -> DetectionRules | None:
    """The rules of such a call; None for anything else."""
    attrs = expr.attrs if isinstance(expr, relax.Call) else None
    if not isinstance(attrs, tvm.ir.DictAttrs) or attrs.get("kind") != _NAME:
        return None
    types = {"float": float, "int": int, "bool": bool}
    return DetectionRules(
        **{f.name: types[str(f.type)](attrs[f.name]) for f in fields(DetectionRules)}
    )
