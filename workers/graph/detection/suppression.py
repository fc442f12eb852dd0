"""The TIR function of plain suppression: indexes of the boxes that are nobody's doubles."""

from __future__ import annotations

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812 - its name everywhere

from workers.graph.detection.kernel import WRITTEN_OUT, Found, Search
from workers.graph.detection.rules import DetectionRules
from workers.graph.writing import Value, memory, parameter


def suppression_of(rules: DetectionRules, boxes: int) -> tirx.PrimFunc:
    """The function of boxes [boxes, 4] and scores [boxes].

    Args:
        rules: the thresholds and how many boxes at most are kept.
        boxes: number of boxes, each by two opposite corners.

    Returns:
        Of three results: indexes int32 [most], scores float32 [most], zeros after the last, and
        their number, an int32 scalar.
    """
    most = rules.most
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_attr(WRITTEN_OUT)
            given = parameter("given", (boxes, 4))
            scores = parameter("scores", (boxes,))
            indexes = parameter("indexes", (most,), "int32")
            best = parameter("best", (most,))
            count = parameter("count", (), "int32")
            corners, values = memory((boxes, 4), "float32"), memory((boxes,), "float32")
            with T.serial(0, most) as slot:
                indexes[slot] = T.int32(0)
                best[slot] = T.float32(0.0)
            with T.serial(0, boxes) as box:
                values[box] = scores[box]
                for side in (0, 1):
                    corners[box, side] = T.min(given[box, side], given[box, side + 2])
                    corners[box, side + 2] = T.max(given[box, side], given[box, side + 2])
            taken = memory((1,), "int32", "local")
            taken[0] = T.int32(0)

            def take(box: Value, _: Value) -> None:
                indexes[taken[0]] = box
                best[taken[0]] = values[box]
                taken[0] = taken[0] + 1

            candidates = memory((boxes,), "int32")
            nothing = Found(None, None, None, None)
            search = Search(rules, boxes, 1, None, corners, values, candidates, nothing)
            search.suppress(most, take)
            count[()] = taken[0]
        return builder.get()
