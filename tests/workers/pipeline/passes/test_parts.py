"""Slices of concatenations and concatenations of slices: only the pieces are left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, weights
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

INPUTS = {"x": [2, 6, 3], "z": [2, 4, 3]}


class Network:
    """Nodes one after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, op: str, args: Sequence[str], **attributes: object) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, args, [name], name=name, **attributes))
        return name

    def cut(self, data: str, begin: int, end: int, axis: int = 1, step: int = 1) -> str:
        bounds = []
        for value in (begin, end, axis, step):
            self.constants[f"i{value}"] = np.array([value], np.int64)
            bounds.append(f"i{value}")
        return self.add("Slice", [data, *bounds])

    def model(self, *outputs: str) -> onnx.ModelProto:
        return make_model(self.nodes, INPUTS, list(outputs), self.constants)


def pieces_of_a_concatenation() -> tuple[onnx.ModelProto, int]:
    """One whole piece, part of one, and a range over both, for which the whole is needed."""
    network = Network()
    whole = network.add("Concat", ["x", "z"], axis=1)
    first, part = network.cut(whole, 0, 6), network.cut(whole, 7, 9)
    over = network.cut(whole, 5, 8)
    return network.model(network.add("Relu", [first]), part, over, network.cut(over, 0, 1)), 4


def a_list_that_is_filled() -> tuple[onnx.ModelProto, int]:
    """Every element is written into a copy of the whole; nothing but the elements is left."""
    network = Network()
    values = [network.add("Tanh", [network.cut("x", i, i + 1)]) for i in range(6)]
    filled = "x"
    for i, value in enumerate(values):
        around = network.cut(filled, 0, i), network.cut(filled, i + 1, 6)
        filled = network.add("Concat", [around[0], value, around[1]], axis=1)
    return network.model(filled), 6 + 1


def halves_put_back() -> tuple[onnx.ModelProto, int]:
    """Neighbours are what they were cut from; turned round they are not."""
    network = Network()
    low, high = network.cut("x", 0, 2), network.cut("x", 2, 6)
    same = network.add("Concat", [low, high], axis=1)
    other = network.add("Concat", [high, low], axis=1)
    backwards = network.cut(network.cut("x", 5, -7, step=-1), 0, 2)
    return network.model(network.add("Relu", [same]), other, backwards), 3 + 2


MODELS = [pieces_of_a_concatenation(), a_list_that_is_filled(), halves_put_back()]


@pytest.mark.parametrize(("model", "slices"), MODELS, ids=["pieces", "list", "halves"])
def test_only_pieces_are_left(model: onnx.ModelProto, slices: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    graph = import_onnx(path).graph
    normal = normalise(graph)
    names = [binding.op_name for binding in normal.bindings]
    assert names.count("relax.strided_slice") + names.count("relax.concat") == slices
    feeds = {name: weights(*shape, seed=len(name)) for name, shape in INPUTS.items()}
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for ours, theirs in zip(on_host(graph)(*feeds.values()), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    report = partition(normal, NnapiBackend(), 7).report
    assert all(
        row.rejection is None or "Alone" in row.rejection.sentence for row in report.operations
    )
