"""The last operators of detectors: boxes decoded, doubles dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.detection.call import detections
from workers.graph.detection.kernel import kernel_of
from workers.graph.detection.rules import DetectionRules
from workers.graph.detection.suppression import suppression_of

_DELTAS, _SCORES, _ANCHORS = range(3)

_DEFAULTS: Mapping[str, Any] = {"detections_per_class": 100, "use_regular_nms": False}
"""Of the options that old converters leave out."""


def _detection_postprocess(op: Emitter) -> None:
    """Results in LiteRT's order: boxes, classes and scores of all, and their number, all float32.

    What LiteRT leaves as it finds it behind the last detection ("fast" suppression) is zeros here.
    """
    deltas, scores = op.shape(_DELTAS), op.shape(_SCORES)
    rules = _rules(op, scores[-1])
    if len(op.operator.outputs) != 4:
        raise op.unsupported(f"has {len(op.operator.outputs)} outputs instead of 4")
    if len(deltas) != 3 or deltas[0] != 1 or deltas[2] < 4 or scores[:2] != deltas[:2]:
        raise op.unsupported(f"takes boxes {deltas} and scores {scores}, which do not fit")
    if op.shape(_ANCHORS) != (deltas[1], 4):
        raise op.unsupported(f"has {op.shape(_ANCHORS)} anchors for {deltas[1]} boxes")
    function = op.define(kernel_of(rules, deltas[1], deltas[2], scores[2]), "detections")
    found = op.emit(
        detections(function, rules, op.real(_DELTAS), op.real(_SCORES), op.real(_ANCHORS))
    )
    for position in range(4):
        item = op.emit(relax.TupleGetItem(found, position))
        is_integer = position in (1, 3)
        op.give(relax.op.astype(item, "float32") if is_integer else item, position)


def _rules(op: Emitter, columns: int) -> DetectionRules:
    options = _options(op)

    def value(name: str) -> Any:
        if name not in options:
            raise op.unsupported(f"lacks the option {name!r}")
        return options[name]

    background = columns - int(value("num_classes"))
    if background not in (0, 1):
        raise op.unsupported(f"has {columns} scores a box for {value('num_classes')} classes")
    rules = DetectionRules(
        scale_y=float(value("y_scale")),
        scale_x=float(value("x_scale")),
        scale_height=float(value("h_scale")),
        scale_width=float(value("w_scale")),
        score_threshold=float(value("nms_score_threshold")),
        iou_threshold=float(value("nms_iou_threshold")),
        most=int(value("max_detections")),
        most_of_class=int(value("detections_per_class")),
        classes_each=int(value("max_classes_per_detection")),
        is_by_class=bool(value("use_regular_nms")),
        background=background,
    )
    least = min(rules.most, rules.most_of_class, rules.classes_each)
    if least < 1 or not 0 < rules.iou_threshold <= 1:
        raise op.unsupported("has limits below 1 or no threshold between 0 and 1")
    return rules


def _options(op: Emitter) -> Mapping[str, Any]:
    try:
        stated = flexbuffers.Loads(op.operator.custom_options)
    except Exception as error:  # the reader has no verifier: a bad offset can raise anything
        raise op.unsupported("has options that cannot be read") from error
    if not isinstance(stated, dict):
        raise op.unsupported("has options that are no map")
    return {**_DEFAULTS, **stated}


def _suppression(op: Emitter) -> None:
    """Inputs: corners, scores, most boxes, overlap, least score, and version 5's softness.

    Results: indexes, in version 5 their scores, and how many there are.
    """
    boxes, has_scores = op.shape(0)[0], len(op.operator.outputs) == 3
    (most,) = op.integers(2)
    overlap, least, softness = (
        np.float32(op.needed(position).item()) if op.has(position) else np.float32(0)
        for position in (3, 4, 5)
    )
    if softness > 0:
        raise op.unsupported("lowers the scores of boxes that overlap")
    # This one drops boxes at the overlap itself, and scores at the threshold.
    rules = DetectionRules(
        *(1.0,) * 4,
        score_threshold=float(np.nextafter(least, np.float32(np.inf))),
        iou_threshold=float(np.nextafter(overlap, np.float32(0))),
        most=most,
        most_of_class=most,
        classes_each=1,
        is_by_class=False,
        background=0,
    )
    function = op.define(suppression_of(rules, boxes), "suppression")
    results = [
        relax.TensorType((most,), "int32"),
        relax.TensorType((most,), "float32"),
        relax.TensorType((), "int32"),
    ]
    found = op.emit(relax.call_tir(function, relax.Tuple([op.real(0), op.real(1)]), results))
    for position, item in enumerate((0, 1, 2) if has_scores else (0, 2)):
        op.give(op.emit(relax.TupleGetItem(found, item)), position)


CONVERTERS: Mapping[str, Converter] = {
    "NON_MAX_SUPPRESSION_V4": _suppression,
    "NON_MAX_SUPPRESSION_V5": _suppression,
    "TFLite_Detection_PostProcess": _detection_postprocess,
}
"""By TFLite operator name, or the custom operator's own."""
