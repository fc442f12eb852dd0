"""What drawn models once found wrong, as small as it was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.workers.onnx_models import make_model
from tests.workers.properties.drawing import values_for
from tests.workers.properties.phone import LEVELS, Phone


def _tanh_then(*nodes: onnx.NodeProto, shape: tuple[int, ...], **constants: Any) -> object:
    tanh = helper.make_node("Tanh", ["x"], ["t"], name="tanh")
    return make_model([tanh, *nodes], {"x": shape}, ["y"], constants)


def _arg_keeps_its_axis() -> object:
    arg = helper.make_node("ArgMin", ["t"], ["i"], name="arg", axis=-1, keepdims=1)
    cast = helper.make_node("Cast", ["i"], ["y"], name="cast", to=TensorProto.FLOAT)
    return _tanh_then(arg, cast, shape=(2, 3, 4))


def _reader_of_a_tuple() -> object:
    top = helper.make_node("TopK", ["t", "k"], ["v", "i"], name="top", axis=0, largest=0)
    relu = helper.make_node("Relu", ["v"], ["y"], name="relu")
    return _tanh_then(top, relu, shape=(3, 4), k=np.array([2], np.int64))


def _resize(scale: float, size: int, frame: str, mode: str, width: int = 4) -> object:
    names = ["t", "", "s"]
    attributes = {"mode": mode, "coordinate_transformation_mode": frame}
    node = helper.make_node("Resize", names, ["y"], name="resize", **attributes)
    scales = np.array([1, 1, scale, 1], np.float32)
    return _tanh_then(node, shape=(1, 1, size, width), s=scales)


def _quantized_padding_value() -> object:
    def dequantized(name: str, values: str) -> onnx.NodeProto:
        return helper.make_node("DequantizeLinear", [values, "s", "z"], [name], name=name)

    nodes = (
        helper.make_node("QuantizeLinear", ["t", "s", "z"], ["q"], name="quantize"),
        dequantized("d", "q"),
        dequantized("e", "v"),
        helper.make_node("Pad", ["d", "p", "e"], ["y"], name="pad"),
    )
    constants = {"v": np.int8(64), "s": np.float32(1 / 128), "z": np.int8(0)}
    return _tanh_then(*nodes, shape=(2, 3), p=np.array([0, 1, 1, 0], np.int64), **constants)


CASES = {
    "arg_keepdims_needs_reshape_of_int32": _arg_keeps_its_axis(),
    "reader_of_a_result_of_several": _reader_of_a_tuple(),
    "resize_by_a_scale_that_leaves_a_rest": _resize(0.5, 7, "half_pixel", "nearest"),
    "resize_to_one_row_with_corners": _resize(0.5, 2, "align_corners", "linear"),
    "resize_of_one_row_with_corners": _resize(1, 1, "align_corners", "linear"),
    "resize_of_one_pixel_with_corners": _resize(1, 1, "align_corners", "nearest", width=1),
    "resize_of_one_column_with_corners": _resize(2, 3, "align_corners", "linear", width=1),
    "quantized_padding_value": _quantized_padding_value(),
}


@pytest.mark.parametrize("name", CASES)
def test_stays_repaired(name: str, phone: Phone) -> None:
    model = CASES[name]
    assert isinstance(model, onnx.ModelProto)
    for level in LEVELS:
        phone.compare(model, values_for(model), level)
