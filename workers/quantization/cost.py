"""What quantization costs: the quantized model's answers against the float model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contracts.quantization import QuantizationCost

Array = NDArray[Any]


def measure_cost(
    wanted: Mapping[str, Array],
    found: Mapping[str, Array],
    output_names: Sequence[str],
    labels: Array | None,
) -> QuantizationCost:
    """Compare the outputs of both models, `[samples, *shape]` each.

    Args:
        wanted: the float model's.
        found: the quantized model's.
        output_names: in the model's order; the first holds the classes' scores, if any does.
        labels: the right class of each sample, where known.
    """
    first = output_names[0]
    count = len(wanted[first])
    right, ours = _largest(wanted[first]), _largest(found[first])
    agreement = float_top1 = quantized_top1 = loss = None
    if right is not None and ours is not None:
        same = int(np.sum(right == ours))
        agreement, loss = same / count, (count - same) / count
        if labels is not None:
            # Counted before they are divided: 0.985 - 0.98 is more than 0.005.
            before, after = (int(np.sum(c == labels.reshape(-1))) for c in (right, ours))
            float_top1, quantized_top1 = before / count, after / count
            loss = max(before - after, 0) / count
    errors = [_errors(wanted[name], found[name]) for name in output_names]
    return QuantizationCost(
        sample_count=count,
        float_top1=float_top1,
        quantized_top1=quantized_top1,
        agreement=agreement,
        loss=loss,
        max_abs_error=max(absolute for absolute, _ in errors),
        max_rel_error=max(relative for _, relative in errors),
    )


def _errors(wanted: Array, found: Array) -> tuple[float, float]:
    """Largest absolute error, and its share of the output's largest magnitude."""
    magnitudes = np.abs(wanted.astype(np.float64))
    errors = np.abs(wanted.astype(np.float64) - found.astype(np.float64))
    finite = np.isfinite(errors)
    largest = float(errors[finite].max(initial=0.0))
    scale = float(magnitudes[finite].max(initial=0.0))
    return largest, largest / scale if scale else largest


def _largest(scores: Array) -> NDArray[np.intp] | None:
    """Class of each sample; None where the output is no vector of scores (the farm's own rule)."""
    flat = scores.reshape(len(scores), -1)
    if flat.shape[1] < 2 or sum(size > 1 for size in scores.shape[1:]) != 1:
        return None
    return np.asarray(flat.argmax(axis=1), dtype=np.intp)
