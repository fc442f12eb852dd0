"""The TIR function of `workers.graph.detection.call`: greedy suppression as LiteRT does it.

Nothing is sorted: each step takes the best candidate that is left (of equal ones the first) and
drops its doubles, which gives the order of a stable sort.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812 - its name everywhere

from workers.graph.detection.rules import DetectionRules
from workers.graph.writing import Value, memory, parameter, variable, when

WRITTEN_OUT = {"tirx.noalias": True, "tirx.is_scheduled": True, "op_pattern": 8}
"""Attributes of a function that is its own schedule, and that nothing is fused with."""


def kernel_of(rules: DetectionRules, boxes: int, coordinates: int, columns: int) -> tirx.PrimFunc:
    """The function.

    Args:
        rules: of the detector.
        boxes: number of anchors.
        coordinates: numbers the model gives for a box; those after the fourth are key points.
        columns: of the scores, background included.
    """
    slots = rules.slots
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_attr(WRITTEN_OUT)
            deltas = parameter("deltas", (1, boxes, coordinates))
            scores = parameter("scores", (1, boxes, columns))
            anchors = parameter("anchors", (boxes, 4))
            found = Found(
                parameter("found_boxes", (1, slots, 4)),
                parameter("found_classes", (1, slots), "int32"),
                parameter("found_scores", (1, slots)),
                parameter("count", (1,), "int32"),
            )
            corners = memory((boxes, 4), "float32")
            _clear(found, slots)
            _decode(rules, boxes, deltas, anchors, corners)
            search = Search(
                rules,
                boxes,
                columns - rules.background,
                scores,
                corners,
                memory((boxes,), "float32"),
                memory((boxes,), "int32"),
                found,
            )
            search.by_class() if rules.is_by_class else search.by_box()
        return builder.get()


@dataclass(frozen=True)
class Found:
    """The results."""

    boxes: Value
    classes: Value
    scores: Value
    count: Value


def _clear(found: Found, slots: int) -> None:
    found.count[0] = T.int32(0)
    with T.serial(0, slots) as slot:
        found.classes[0, slot] = T.int32(0)
        found.scores[0, slot] = T.float32(0.0)
        with T.serial(0, 4) as side:
            found.boxes[0, slot, side] = T.float32(0.0)


def _decode(
    rules: DetectionRules, boxes: int, deltas: Value, anchors: Value, corners: Value
) -> None:
    """Centres and sizes to corners, in 64 bits as LiteRT does."""
    scales = (rules.scale_y, rules.scale_x, rules.scale_height, rules.scale_width)

    def wide(value: Value) -> Value:
        return T.cast(value, "float64")

    with T.serial(0, boxes) as box:
        for axis in (0, 1):
            centre, size = wide(anchors[box, axis]), wide(anchors[box, axis + 2])
            moved = wide(deltas[0, box, axis]) / T.float64(scales[axis]) * size + centre
            grown = T.exp(wide(deltas[0, box, axis + 2]) / T.float64(scales[axis + 2]))
            middle = T.cast(moved, "float32")
            half = T.cast(T.float64(0.5) * grown * size, "float32")
            corners[box, axis] = middle - half
            corners[box, axis + 2] = middle + half


def _overlap(corners: Value, one: Value, other: Value) -> Value:
    """Intersection over union; 0 where a box has no area."""

    def area(box: Value) -> Value:
        return (corners[box, 2] - corners[box, 0]) * (corners[box, 3] - corners[box, 1])

    def common(axis: int) -> Value:
        end = T.min(corners[one, axis + 2], corners[other, axis + 2])
        return T.max(end - T.max(corners[one, axis], corners[other, axis]), T.float32(0.0))

    shared, zero = common(0) * common(1), T.float32(0.0)
    is_flat = tirx.any(area(one) <= zero, area(other) <= zero)
    return tirx.if_then_else(is_flat, zero, shared / (area(one) + area(other) - shared))


@dataclass(frozen=True)
class Search:
    """Suppression over boxes, and what is made of it.

    Attributes:
        rules: of the detector.
        boxes: number of them.
        labels: classes, without background.
        scores: of all boxes and columns.
        corners: of all boxes.
        values: the score of each box that is compared.
        candidates: indexes of the boxes that are left, in their order.
        found: the results.
    """

    rules: DetectionRules
    boxes: int
    labels: int
    scores: Value
    corners: Value
    values: Value
    candidates: Value
    found: Found

    def by_class(self) -> None:
        """The best of all classes in falling order; of equal scores the earlier class first."""
        with T.serial(0, self.labels) as label:
            with T.serial(0, self.boxes) as box:
                self.values[box] = self._score(box, label)
            slot = variable(0)
            self.suppress(
                min(self.rules.most_of_class, self.rules.most),
                lambda box, left: self._insert(box, label, slot, left),
            )

    def by_box(self) -> None:
        """Boxes by their best scores, each with its best classes."""
        with T.serial(0, self.boxes) as box:
            self.values[box] = self._score(box, 0)
            with T.serial(1, self.labels) as label:
                self.values[box] = T.max(self.values[box], self._score(box, label))
        self.suppress(self.rules.most, lambda box, _: self._append(box))

    def _score(self, box: Value, label: Value) -> Value:
        return self.scores[0, box, label + self.rules.background]

    def suppress(self, most: int, take: Callable[[Value, Value], None]) -> None:
        """Give `take` the boxes that are nobody's doubles, best first.

        Args:
            most: how many at most.
            take: writes what becomes of a box; its second argument, how many candidates are left,
                may be set to 0.
        """
        left, best, taken = variable(0), variable(-1), variable(0)
        least = T.float32(self.rules.score_threshold)
        with T.serial(0, self.boxes) as box, when(self.values[box] >= least):
            self._keep(box, left, best)
        with T.While(tirx.all(left[0] > 0, taken[0] < most)):
            chosen, kept, leader = variable(0), variable(0), variable(-1)
            chosen[0] = best[0]
            taken[0] = taken[0] + 1
            with T.serial(0, left[0]) as place:
                box = self.candidates[place]
                overlap = _overlap(self.corners, chosen[0], box)
                is_single = overlap <= T.float32(self.rules.iou_threshold)
                with when(tirx.all(box != chosen[0], is_single)):
                    self._keep(box, kept, leader)
            left[0] = kept[0]
            best[0] = leader[0]
            take(chosen[0], left)

    def _keep(self, box: Value, count: Value, best: Value) -> None:
        self.candidates[count[0]] = box
        count[0] = count[0] + 1
        is_better = self.values[box] > self.values[T.max(best[0], 0)]
        with when(tirx.any(best[0] < 0, is_better)):
            best[0] = box

    def _insert(self, box: Value, label: Value, slot: Value, left: Value) -> None:
        """Put a box among those of the classes before; `slot` follows the last one put."""
        found, most, score = self.found, self.rules.most, self.values[box]
        is_behind = found.scores[0, T.min(slot[0], most - 1)] >= score
        with T.While(tirx.all(slot[0] < found.count[0], is_behind)):
            slot[0] = slot[0] + 1
        with T.If(slot[0] < most):
            with T.Then():
                self._make_room(slot[0])
                self._put(slot[0], box, label)
                found.count[0] = T.min(found.count[0] + 1, most)
                slot[0] = slot[0] + 1
            with T.Else():
                left[0] = T.int32(0)  # the rest of the class has lower scores still

    def _make_room(self, slot: Value) -> None:
        found = self.found
        last = T.min(found.count[0], self.rules.most - 1)
        with T.serial(0, last - slot) as step:
            found.scores[0, last - step] = found.scores[0, last - step - 1]
            found.classes[0, last - step] = found.classes[0, last - step - 1]
            with T.serial(0, 4) as side:
                found.boxes[0, last - step, side] = found.boxes[0, last - step - 1, side]

    def _append(self, box: Value) -> None:
        """Put a box with its best classes behind the last one; of equal classes the first."""
        before = variable(-1)
        for place in range(min(self.rules.classes_each, self.labels)):
            best = variable(-1)
            with T.serial(0, self.labels) as label:
                score, last = self._score(box, label), self._score(box, T.max(before[0], 0))
                is_next = tirx.all(score == last, label > before[0])
                is_left = tirx.any(before[0] < 0, score < last, is_next)
                is_better = tirx.any(best[0] < 0, score > self._score(box, T.max(best[0], 0)))
                with when(tirx.all(is_left, is_better)):
                    best[0] = label
            before[0] = best[0]
            self._put(self.found.count[0] * self.rules.classes_each + place, box, best[0])
        self.found.count[0] = self.found.count[0] + 1

    def _put(self, slot: Value, box: Value, label: Value) -> None:
        self.found.classes[0, slot] = label
        self.found.scores[0, slot] = self._score(box, label)
        with T.serial(0, 4) as side:
            self.found.boxes[0, slot, side] = self.corners[box, side]
