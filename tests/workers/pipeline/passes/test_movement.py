"""Channel shuffles stay in NHWC, in quantized networks as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from service.contracts.jobs import ModelFormat
from tests.workers.onnx_models import make_model, weights
from workers.graph.quantization import QUANTIZE
from workers.pipeline.stages.ingest import ingest


def shuffle_network(is_quantized: bool) -> onnx.ModelProto:
    """Convolution, shuffle of six channels in two groups, convolution."""
    nodes: list[onnx.NodeProto] = []

    def rounded(name: str) -> str:
        if not is_quantized:
            return name
        parameters = ["scale", "zero"]
        nodes.append(helper.make_node("QuantizeLinear", [name, *parameters], [f"{name}_q"]))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_q", *parameters], [f"{name}_r"])
        )
        return f"{name}_r"

    nodes.append(helper.make_node("Conv", [rounded("x"), "w"], ["a"]))
    nodes.append(helper.make_node("Reshape", [rounded("a"), "apart"], ["b"]))
    nodes.append(helper.make_node("Transpose", [rounded("b")], ["c"], perm=[0, 2, 1, 3, 4]))
    nodes.append(helper.make_node("Reshape", [rounded("c"), "together"], ["d"]))
    nodes.append(helper.make_node("Conv", [rounded("d"), "w"], ["y"]))
    constants = {
        "w": weights(6, 6, 1, 1),
        "apart": np.array([1, 2, 3, 4, 5]),
        "together": np.array([1, 6, 4, 5]),
    }
    if is_quantized:
        constants |= {"scale": np.float32(0.1), "zero": np.uint8(128)}
    return make_model(nodes, {"x": (1, 6, 4, 5)}, ["y"], constants)


@pytest.mark.parametrize("is_quantized", [False, True])
def test_only_the_shuffle_and_the_networks_borders_are_transposed(
    tmp_path: Path, is_quantized: bool
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(shuffle_network(is_quantized), path)
    names = [b.op_name for b in ingest(path, ModelFormat.ONNX, {}).graph.bindings]
    assert names.count("relax.permute_dims") == 3
    first, shuffle, last = (i for i, name in enumerate(names) if name == "relax.permute_dims")
    assert (QUANTIZE in names[shuffle:last]) == is_quantized
    assert "relax.nn.conv2d" in names[first:shuffle]
