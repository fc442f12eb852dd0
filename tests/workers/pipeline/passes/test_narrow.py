"""Token ids and masks of 64 bits, as exported encoders have them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.workers.onnx_models import make_model, weights
from tests.workers.properties.phone import Phone

LEVEL = 4


def _model(nodes: list[onnx.NodeProto], **constants: np.ndarray) -> onnx.ModelProto:
    return make_model(nodes, {"x": [2, 3]}, ["y"], constants, input_type=TensorProto.INT64)


@pytest.mark.parametrize("axis", [0, 1])
def test_an_embedding_is_offloaded_and_counts_from_the_end(axis: int, phone: Phone) -> None:
    gather = helper.make_node("Gather", ["table", "x"], ["y"], axis=axis)
    ids = np.array([[0, 5, -1], [-6, 3, 3]])
    answer = phone.compare(_model([gather], table=weights(6, 6)), {"x": ids}, LEVEL)
    assert answer.outputs is not None
    assert answer.rejected == ()
    assert answer.lowered.count("GATHER") == 1


def test_one_cast_is_left_of_a_mask_and_it_stands_in_front(phone: Phone) -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axes"], ["1"]),
        helper.make_node("Transpose", ["1"], ["2"], perm=[0, 2, 1, 3]),
        helper.make_node("Cast", ["2"], ["3"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["x"], ["4"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["4", "axes"], ["5"]),
        helper.make_node("Add", ["3", "5"], ["y"]),
    ]
    mask = np.array([[1, 0, 2**40], [1, 1, -(2**33)]])
    answer = phone.compare(_model(nodes, axes=np.array([1, 3])), {"x": mask}, LEVEL)
    assert answer.outputs is not None
    # Both casts are one, and wide numbers keep their value.
    assert set(answer.rejected) == {"Cast"}
    assert len(answer.documents) == 1


def test_numbers_that_are_no_index_stay_wide(phone: Phone) -> None:
    add = helper.make_node("Add", ["x", "x"], ["1"])
    cast = helper.make_node("Cast", ["1"], ["2"], to=TensorProto.FLOAT)
    relu = helper.make_node("Relu", ["2"], ["y"])
    wide = np.array([[2**40, 1, 2], [3, 4, -(2**40)]])
    answer = phone.compare(_model([add, cast, relu]), {"x": wide}, LEVEL)
    assert answer.outputs is not None
    assert set(answer.rejected) == {"Add", "Cast"}


@pytest.mark.parametrize("op", ["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
def test_comparisons_with_a_number_are_offloaded_whole(op: str, phone: Phone) -> None:
    """The truth values of a mask are moved and spread like an exported encoder's."""
    nodes = [
        helper.make_node(op, ["x", "pivot"], ["1"]),
        helper.make_node("Unsqueeze", ["1", "axes"], ["2"]),
        helper.make_node("Expand", ["2", "shape"], ["3"]),
        helper.make_node("Where", ["3", "high", "low"], ["y"]),
    ]
    numbers = np.array([[3, 2, 4], [2**32 + 3, -(2**40), 2**62]])
    model = _model(
        nodes, pivot=np.array(3), axes=np.array([1]), shape=np.array([2, 4, 3]),
        high=weights(2, 4, 3), low=np.float32(-9),
    )  # fmt: skip
    answer = phone.compare(model, {"x": numbers}, LEVEL)
    assert answer.outputs is not None
    assert answer.rejected == ()
    assert len(answer.documents) == 1


def test_a_mask_cast_to_truth_is_offloaded(phone: Phone) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["1"], to=TensorProto.BOOL),
        helper.make_node("Reshape", ["1", "shape"], ["2"]),
        helper.make_node("Where", ["2", "high", "low"], ["y"]),
    ]
    constants = {"shape": np.array([1, 1, 2, 3]), "high": weights(1, 4, 2, 3)}
    model = _model(nodes, low=np.float32(-9), **constants)
    answer = phone.compare(model, {"x": np.array([[0, 1, 2**32], [-1, 0, 7]])}, LEVEL)
    assert answer.outputs is not None
    assert answer.rejected == ()
