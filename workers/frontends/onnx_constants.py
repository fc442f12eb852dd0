"""Constants in forms that TVM's importer does not know: short ones, and integers below a byte."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

_ELEMENTS = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def spell_out_constants(graph: onnx.GraphProto) -> None:
    """Give each `Constant` of numbers its tensor; changed in place."""
    for node in graph.node:
        if node.op_type != "Constant":
            continue
        for attribute in list(node.attribute):
            dtype = _ELEMENTS.get(attribute.name)
            if dtype is None:
                continue
            value = np.asarray(helper.get_attribute_value(attribute), dtype)
            tensor = numpy_helper.from_array(value)
            node.attribute.remove(attribute)
            node.attribute.append(helper.make_attribute("value", tensor))


_SMALL = {
    onnx.TensorProto.INT2: np.int8,
    onnx.TensorProto.INT4: np.int8,
    onnx.TensorProto.UINT2: np.uint8,
    onnx.TensorProto.UINT4: np.uint8,
}


def widen_constants(graph: onnx.GraphProto) -> None:
    """Store integers of 2 and 4 bits in bytes, with the same values; changed in place.

    They are weights and their zero points: quantized tensors that a network computes are not of
    these types.
    """
    tensors = [*graph.initializer]
    for node in graph.node:
        tensors += [a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR]
    for tensor in tensors:
        dtype = _SMALL.get(tensor.data_type)
        if dtype is not None:
            array = numpy_helper.to_array(tensor).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
