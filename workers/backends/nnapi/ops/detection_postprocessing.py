"""DETECTION_POSTPROCESSING: boxes decoded and freed of doubles, four results at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import TuplePattern, is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import needs_level, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.backends.nnapi.opset import opset
from workers.graph.detection.call import rules_of
from workers.graph.detection.rules import DetectionRules
from workers.graph.graph import dtype_of, static_shape

_ORDER = (2, 0, 1, 3)
"""NNAPI gives scores, boxes, classes, count; the graph boxes, classes, scores, count."""


class DetectionPostprocessing(Operation):
    """LiteRT's detections where NNAPI's word gives the same ones."""

    name = "DETECTION_POSTPROCESSING"
    gives_several = True

    def patterns(self) -> Iterator[Pattern]:
        deltas, scores, anchors = wildcard(), wildcard(), wildcard()
        root = is_op("relax.call_tir")(wildcard(), TuplePattern([deltas, scores, anchors]))
        parts = {"deltas": deltas, "scores": scores, "anchors": anchors}
        yield Pattern(root, {**parts, "call": root})

    def fits(self, site: Site) -> bool:
        return rules_of(site["call"]) is not None

    def check(self, site: Site) -> Rejection | None:
        too_old = needs_level(self.name, opset()[self.name].level, site.feature_level)
        if too_old is not None:
            return too_old
        reason = _in_the_way(site, _rules(site))
        return unsupported("operands", f"{self.name} {reason}.") if reason else None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        rules = _rules(site)
        scores = builder.operand(site["scores"])
        if not rules.background:  # NNAPI's first column is never a class
            batch, boxes, columns = builder.shape(scores)
            plain, scores = scores, builder.like(scores, (batch, boxes, columns + 1))
            front = builder.constant(np.array([[0, 0], [0, 0], [1, 0]], np.int32))
            builder.add("PAD", scores, input=plain, paddings=front)
        builder.add(
            self.name,
            tuple(_result(site, builder, index) for index in _ORDER),
            scores=scores,
            deltas=builder.operand(site["deltas"]),
            anchors=builder.operand(site["anchors"]),
            scale_y=builder.real(rules.scale_y, scores),
            scale_x=builder.real(rules.scale_x, scores),
            scale_height=builder.real(rules.scale_height, scores),
            scale_width=builder.real(rules.scale_width, scores),
            is_regular=builder.bool(rules.is_by_class),
            most_detections=builder.int32(rules.most),
            most_classes=builder.int32(rules.classes_each),
            detections_per_class=builder.int32(min(rules.most_of_class, rules.most)),
            # NNAPI wants more than the score and drops at the overlap itself, LiteRT not.
            score_threshold=builder.real(_next(rules.score_threshold, 0), scores),
            iou_threshold=builder.real(_next(rules.iou_threshold, 2), scores),
            has_background=builder.bool(False),  # and classes are counted without it
        )


def _rules(site: Site) -> DetectionRules:
    rules = rules_of(site["call"])
    assert rules is not None  # it fits
    return rules


def _in_the_way(site: Site, rules: DetectionRules) -> str | None:
    tensors = [site[part] for part in ("deltas", "scores", "anchors")]
    if any(static_shape(t) is None or dtype_of(t) != "float32" for t in tensors):
        return "takes real numbers of known shapes"
    if site.numbers.half:
        return "would see equal scores where float32 has different ones, in float16"
    if site["scores"] in site.numbers.coarse:
        return "leaves the order of equal scores open, and scores of 8 bits often are equal"
    if rules.classes_each != 1:
        return "counts the classes of a box as detections of their own"
    if rules.score_threshold <= 0:
        return "takes no detection of score 0"
    if min(rules.scale_y, rules.scale_x, rules.scale_height, rules.scale_width) <= 0:
        return "takes scales above 0"
    return None


def _next(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


def _result(site: Site, builder: ModelBuilder, index: int) -> int:
    """A variable's operand; one of nobody's where the model drops the result."""
    if f"result{index}" in site:
        return builder.output(site[f"result{index}"])
    kind = site["call"].ty.fields[index]
    return builder.temporary([int(d) for d in kind.shape.values], str(kind.dtype))


OPERATIONS = (DetectionPostprocessing(),)
