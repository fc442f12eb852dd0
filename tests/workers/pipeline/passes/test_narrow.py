"""Token ids and masks of 64 bits, as exported encoders have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from service.contracts.jobs import ModelFormat
from tests.workers.onnx_models import make_model, weights
from tests.workers.properties.phone import Phone
from workers.pipeline.stages.ingest import ingest

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


def test_a_mask_is_converted_once_at_the_border_and_that_is_no_nodes(phone: Phone) -> None:
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
    # Both casts are the border's conversion, and wide numbers keep their value.
    assert answer.rejected == ()
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


def test_the_report_says_where_an_input_is_converted(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["1"], name="mask", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["1", "low"], ["y"], name="scaled"),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(_model(nodes, low=np.float32(-9)), path)
    found = {node.name: node.note for node in ingest(path, ModelFormat.ONNX, {}).graph.nodes}
    assert "converted on the CPU" in (found["mask"] or "")
    assert found["scaled"] is None


def _cast(source: str, result: str, to: int = TensorProto.INT64) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [result], to=to)


def _token_positions() -> onnx.ModelProto:
    """RoBERTa's positions: how many tokens there are up to each, padding apart."""
    nodes = [
        helper.make_node("Equal", ["x", "padding"], ["1"]),
        helper.make_node("Not", ["1"], ["2"]),
        _cast("2", "3"),
        helper.make_node("CumSum", ["3", "axis"], ["4"]),
        helper.make_node("Mul", ["4", "3"], ["5"]),
        helper.make_node("Add", ["5", "padding"], ["6"]),
        helper.make_node("GatherElements", ["kinds", "6"], ["7"], axis=1),
        helper.make_node("Gather", ["table", "6"], ["8"]),
        helper.make_node("Gather", ["table", "7"], ["9"]),
        helper.make_node("Add", ["8", "9"], ["y"]),
    ]
    kinds = np.arange(14, dtype=np.int64).reshape(2, 7) % 5
    return _model(nodes, padding=np.array(1), axis=np.array(1), kinds=kinds, table=weights(8, 4))


def _last_token() -> onnx.ModelProto:
    """CLIP's pooling: the row at which the largest token stands."""
    nodes = [
        _cast("x", "1", TensorProto.INT32),
        _cast("1", "1f", TensorProto.FLOAT),
        helper.make_node("ArgMax", ["1f"], ["2"], axis=1, keepdims=1),
        helper.make_node("Concat", ["batch", "2"], ["3"], axis=1),
        helper.make_node("Gather", ["table", "x"], ["4"]),
        helper.make_node("GatherND", ["4", "3"], ["y"]),
    ]
    return _model(nodes, batch=np.array([[0], [1]]), table=weights(6, 4))


def _shifted_positions() -> onnx.ModelProto:
    """Positions that are given, after two rows for padding; the last is asked for from the end."""
    nodes = [
        helper.make_node("Add", ["x", "two"], ["1"]),
        helper.make_node("Gather", ["table", "1"], ["y"]),
    ]
    return _model(nodes, two=np.array(-2), table=weights(8, 4))


def _masks_of_pairs() -> onnx.ModelProto:
    """DeBERTa's mask: that of the columns times that of the rows."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "last"], ["1"]),
        helper.make_node("Unsqueeze", ["x", "first"], ["2"]),
        helper.make_node("Mul", ["1", "2"], ["3"]),
        _cast("3", "4", TensorProto.BOOL),
        helper.make_node("Not", ["4"], ["5"]),
        helper.make_node("Where", ["5", "low", "high"], ["y"]),
    ]
    axes = {"first": np.array([1]), "last": np.array([2])}
    return _model(nodes, low=np.float32(-9), high=weights(2, 3, 3), **axes)


def _moved_truth() -> onnx.ModelProto:
    """Truth values turned, joined and counted."""
    nodes = [
        _cast("x", "1", TensorProto.FLOAT),
        helper.make_node("Greater", ["1", "zero"], ["2"]),
        helper.make_node("Transpose", ["2"], ["3"], perm=[1, 0]),
        helper.make_node("Concat", ["3", "more"], ["4"], axis=0),
        _cast("4", "5"),
        helper.make_node("ReduceSum", ["5", "axis"], ["6"], keepdims=0),
        _cast("6", "7", TensorProto.FLOAT),
        helper.make_node("Relu", ["7"], ["y"]),
    ]
    constants = {"zero": np.float32(0), "more": np.ones((1, 2), bool), "axis": np.array([0])}
    return _model(nodes, **constants)


SMALL = {
    "positions of tokens": (_token_positions(), [[5, 1, 7], [1, 3, 2**40 + 1]]),
    "the last token": (_last_token(), [[0, 5, 2], [3, 1, 3]]),
    "positions given": (_shifted_positions(), [[2, 9, 3], [1, 4, 2]]),
    "masks of pairs": (_masks_of_pairs(), [[1, 0, 7], [2**30, -1, 1]]),
    "moved truth": (_moved_truth(), [[1, 0, -2], [2**40, -1, 1]]),
}


@pytest.mark.parametrize("name", SMALL)
def test_integers_that_are_small_by_their_making_are_offloaded(name: str, phone: Phone) -> None:
    model, numbers = SMALL[name]
    answer = phone.compare(model, {"x": np.array(numbers)}, LEVEL)
    assert answer.outputs is not None
    assert answer.rejected == ()
    assert len(answer.documents) == 1
