"""`Constant` nodes in their short forms, which TVM's importer does not know."""

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
