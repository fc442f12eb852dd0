"""What a detector's last operation is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DetectionRules:
    """What TFLite_Detection_PostProcess is told.

    Attributes:
        scale_y: what the deltas of the centres' rows are divided by; the next three alike.
        score_threshold: the least score of a detection.
        iou_threshold: boxes that overlap a better one by more are its doubles.
        most: detections at most.
        most_of_class: of one class, where classes are looked at one by one.
        classes_each: classes that are reported of one box, where they are not.
        is_by_class: whether doubles are looked for in each class by itself (LiteRT's "regular"),
            or among all boxes by their best classes ("fast").
        background: leading columns of the scores that are no class: 0 or 1.
    """

    scale_y: float
    scale_x: float
    scale_height: float
    scale_width: float
    score_threshold: float
    iou_threshold: float
    most: int
    most_of_class: int
    classes_each: int
    is_by_class: bool
    background: int

    @property
    def slots(self) -> int:
        """Detections that the results have room for."""
        return self.most * self.classes_each
