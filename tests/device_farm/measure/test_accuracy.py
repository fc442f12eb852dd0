from __future__ import annotations

import numpy as np
import pytest

from device_farm.measure.accuracy import OutputMismatchError, compare_outputs, compare_tensor

SCORES = np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]], dtype=np.float32)


def test_the_same_outputs_have_no_error() -> None:
    accuracy = compare_outputs({"y": SCORES}, {"y": SCORES.copy()}, ["y"], labels=[1, 0, 1, 0])
    assert (accuracy.sample_count, accuracy.max_abs_error, accuracy.max_rel_error) == (4, 0.0, 0.0)
    assert (accuracy.top1, accuracy.agreement) == (0.75, 1.0)
    assert accuracy.outputs[0].matches_nan


def test_errors_over_all_samples() -> None:
    got = SCORES.copy()
    got[3] = [0.9, 0.7]
    accuracy = compare_outputs({"y": SCORES}, {"y": got}, ["y"], original_top1=0.5)
    assert accuracy.max_abs_error == pytest.approx(0.6, rel=1e-6)
    assert accuracy.max_rel_error == pytest.approx(0.6 / 0.9, rel=1e-6)
    assert accuracy.outputs[0].mean_abs_error == pytest.approx(0.6 / 8, rel=1e-6)
    assert accuracy.agreement == 0.75
    assert accuracy.top1 is None
    assert accuracy.original_top1 == 0.5


def test_the_worst_output_counts() -> None:
    expected = {"a": np.ones((2, 3)), "b": np.full((2, 1), 10.0)}
    got = {"a": np.ones((2, 3)), "b": np.full((2, 1), 15.0)}
    accuracy = compare_outputs(expected, got, ["a", "b"])
    assert (accuracy.max_abs_error, accuracy.max_rel_error) == (5.0, 0.5)
    assert [output.name for output in accuracy.outputs] == ["a", "b"]


@pytest.mark.parametrize("shape", [(3, 1), (3,), (3, 4, 5)])
def test_outputs_that_are_no_scores_have_no_agreement(shape: tuple[int, ...]) -> None:
    tensor = np.zeros(shape, dtype=np.float32)
    assert compare_outputs({"y": tensor}, {"y": tensor}, ["y"]).agreement is None


def test_scores_may_have_axes_of_one() -> None:
    scores = SCORES.reshape(4, 1, 2, 1)
    assert compare_outputs({"y": scores}, {"y": scores}, ["y"]).agreement == 1.0


def test_nan_and_infinity_must_stand_in_the_same_places() -> None:
    expected = np.array([[np.nan, np.inf, 1.0]])
    same = compare_tensor("y", expected, expected.copy())
    assert same.matches_nan
    assert same.max_abs_error == 0.0
    for other in ([[np.nan, -np.inf, 1.0]], [[0.0, np.inf, 1.0]], [[np.nan, np.inf, np.nan]]):
        assert not compare_tensor("y", expected, np.array(other)).matches_nan


def test_unsigned_and_boolean_outputs_do_not_wrap() -> None:
    assert compare_tensor("y", np.uint8([[0]]), np.uint8([[255]])).max_abs_error == 255.0
    assert compare_tensor("y", np.array([[True]]), np.array([[False]])).max_abs_error == 1.0


def test_an_expected_zero_tensor_gives_the_error_itself() -> None:
    assert compare_tensor("y", np.zeros((1, 2)), np.full((1, 2), 0.25)).max_rel_error == 0.25


@pytest.mark.parametrize(
    ("got", "complaint"),
    [
        ({}, "gave no output 'y'"),
        ({"y": SCORES[:3]}, r"shape \(3, 2\), \(4, 2\) expected"),
        ({"y": SCORES.astype(np.float64)}, "float64, float32 expected"),
    ],
)
def test_outputs_of_another_form_are_refused(got: dict[str, np.ndarray], complaint: str) -> None:
    with pytest.raises(OutputMismatchError, match=complaint):
        compare_outputs({"y": SCORES}, got, ["y"])


def test_labels_of_another_number_are_refused() -> None:
    with pytest.raises(OutputMismatchError, match="2 labels for 4 samples"):
        compare_outputs({"y": SCORES}, {"y": SCORES}, ["y"], labels=[0, 1])
