"""A device's outputs against the original model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from service.contracts.runs import Accuracy, OutputAccuracy

Array = npt.NDArray[np.generic]


class OutputMismatchError(Exception):
    """The device's outputs are not of the form the original's are; says which and how."""


def compare_outputs(
    expected: Mapping[str, Array],
    got: Mapping[str, Array],
    output_names: Sequence[str],
    *,
    labels: Sequence[int] | None = None,
    original_top1: float | None = None,
) -> Accuracy:
    """Compares every output of every sample.

    Args:
        expected: the original's outputs, `[samples, *shape]` each.
        got: the device's, the same form.
        output_names: in the model's order; the first one is the classes' scores, if any are.
        labels: the right class of each sample, where known.
        original_top1: the original's share of right samples, handed through.

    Raises:
        OutputMismatchError: an output is missing, or has another shape or another element type.
    """
    for name in output_names:
        _check_form(name, expected, got)
    outputs = tuple(compare_tensor(name, expected[name], got[name]) for name in output_names)
    first = output_names[0]
    sample_count = expected[first].shape[0]
    ours, theirs = _largest(got[first]), _largest(expected[first])
    agreement = None if ours is None or theirs is None else float(np.mean(ours == theirs))
    top1 = None
    if labels is not None and ours is not None:
        if len(labels) != sample_count:
            raise OutputMismatchError(f"{len(labels)} labels for {sample_count} samples")
        top1 = float(np.mean(ours == np.asarray(labels)))
    return Accuracy(
        sample_count=sample_count,
        outputs=outputs,
        max_abs_error=max(output.max_abs_error for output in outputs),
        max_rel_error=max(output.max_rel_error for output in outputs),
        top1=top1,
        original_top1=original_top1,
        agreement=agreement,
    )


def compare_tensor(name: str, expected: Array, got: Array) -> OutputAccuracy:
    """Compares one output, all samples together.

    Errors are taken where both values are finite; where they are not, `matches_nan` says whether
    both have the same NaN or infinity.
    """
    wanted, found = expected.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(wanted) & np.isfinite(found)
    same_elsewhere = np.array_equal(wanted[~finite], found[~finite], equal_nan=True)
    errors = np.abs(wanted[finite] - found[finite])
    magnitude = np.abs(wanted[finite])
    largest_error = float(errors.max(initial=0.0))
    largest = float(magnitude.max(initial=0.0))
    return OutputAccuracy(
        name=name,
        max_abs_error=largest_error,
        # An output that is zero throughout has no scale of its own: the error stands for itself.
        max_rel_error=largest_error / largest if largest else largest_error,
        mean_abs_error=float(errors.mean()) if errors.size else 0.0,
        matches_nan=same_elsewhere,
    )


def _check_form(name: str, expected: Mapping[str, Array], got: Mapping[str, Array]) -> None:
    if name not in expected:
        raise OutputMismatchError(f"the evaluation set has no output {name!r}")
    if name not in got:
        raise OutputMismatchError(f"the device gave no output {name!r}")
    wanted, found = expected[name], got[name]
    if wanted.shape != found.shape:
        raise OutputMismatchError(f"output {name!r}: shape {found.shape}, {wanted.shape} expected")
    if wanted.dtype != found.dtype:
        raise OutputMismatchError(f"output {name!r}: {found.dtype}, {wanted.dtype} expected")


def _largest(scores: Array) -> npt.NDArray[np.intp] | None:
    """Class of each sample; None where the output is no vector of scores."""
    flat = scores.reshape(scores.shape[0], -1)
    if flat.shape[1] < 2 or sum(size > 1 for size in scores.shape[1:]) != 1:
        return None
    return np.asarray(flat.argmax(axis=1), dtype=np.intp)
