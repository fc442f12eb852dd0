"""ONNX Runtime's quantization tool, told what NNAPI wants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import (
    QuantFormat,
    QuantType,
    TensorsData,
    quantize_static,
    save_tensors_data,
)

from service.contracts.errors import NnfarmError
from service.contracts.quantization import IntegerType, QuantizeOptions
from workers.frontends.onnx_lifting import first_line
from workers.quantization.calibration import METHODS
from workers.quantization.float_model import FloatModel

_TYPES: Mapping[IntegerType, QuantType] = {
    IntegerType.INT8: QuantType.QInt8,
    IntegerType.UINT8: QuantType.QUInt8,
}
_MOST_DIMENSIONS = 4
_FIXED_OUTPUTS: Mapping[str, tuple[float, int]] = {
    "Softmax": (1 / 256, 0),
    "Sigmoid": (1 / 256, 0),
    "Tanh": (1 / 128, 128),
}
"""Scale and uint8 zero point NNAPI prescribes; any other keeps the operation off it."""


def quantize(
    model: FloatModel, ranges: TensorsData, options: QuantizeOptions, output: Path
) -> tuple[int, int]:
    """Write the QDQ model; answers how many operations are quantized, and how many there are.

    Raises:
        NnfarmError: `quantize.unsupported_model`.
    """
    ranges_file = output.with_suffix(".ranges.json")
    try:
        save_tensors_data(ranges, ranges_file)
        quantize_static(
            model.path,
            output,
            calibration_cache_path=ranges_file,
            quant_format=QuantFormat.QDQ,
            per_channel=options.per_channel,
            activation_type=_TYPES[options.activation],
            weight_type=_TYPES[options.weight],
            nodes_to_exclude=[*options.exclude_nodes, *_nodes_of_high_rank(model.graph)],
            calibrate_method=METHODS[options.method],
            extra_options={
                "ActivationSymmetric": False,
                # NNAPI's signed weights have no zero point.
                "WeightSymmetric": options.weight is IntegerType.INT8,
                "TensorQuantOverrides": _overrides(model.graph, options),
            },
        )
        quantized = onnx.load(output)
    except Exception as error:
        raise NnfarmError(
            "quantize.unsupported_model",
            f"ONNX Runtime's quantization tool cannot take the model: {first_line(error)}",
        ) from error
    count = _quantized_count(quantized.graph)
    if count == 0:
        raise NnfarmError(
            "quantize.unsupported_model", "None of the model's operations can be quantized."
        )
    return count, len(model.graph.node)


def _nodes_of_high_rank(graph: onnx.GraphProto) -> list[str]:
    """Nodes on tensors of more dimensions than NNAPI's QUANTIZE and DEQUANTIZE take.

    As floats the compiler reshapes them to fewer; between integers they would be left to the CPU.
    """
    values = (*graph.input, *graph.value_info, *graph.output)
    high = {v.name for v in values if len(v.type.tensor_type.shape.dim) > _MOST_DIMENSIONS}
    return [node.name for node in graph.node if high.intersection((*node.input, *node.output))]


def _overrides(graph: onnx.GraphProto, options: QuantizeOptions) -> dict[str, list[dict[str, Any]]]:
    is_signed = options.activation is IntegerType.INT8
    number = np.int8 if is_signed else np.uint8
    return {
        node.output[0]: [
            {
                "quant_type": _TYPES[options.activation],
                "scale": np.array(scale, np.float32),
                "zero_point": np.array(zero_point - 128 * is_signed, number),
            }
        ]
        for node in graph.node
        if node.name not in options.exclude_nodes and (fixed := _FIXED_OUTPUTS.get(node.op_type))
        for scale, zero_point in [fixed]
    }


def _quantized_count(graph: onnx.GraphProto) -> int:
    real = {
        name for node in graph.node if node.op_type == "DequantizeLinear" for name in node.output
    }
    others = (n for n in graph.node if n.op_type not in ("QuantizeLinear", "DequantizeLinear"))
    return sum(any(name in real for name in node.input) for node in others)
