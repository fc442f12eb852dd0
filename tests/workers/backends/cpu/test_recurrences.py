"""LSTMs and GRUs as one kernel, against ONNX Runtime and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.models import TOLERANCE, close, feeds_of
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.nnapi.backend import NnapiBackend
from workers.pipeline.stages.ingest import ingest


def layer_calls(function: relax.Function) -> int:
    count = 0

    def visit(expr: relax.Expr) -> None:
        nonlocal count
        if isinstance(expr, relax.Call) and expr.args:
            count += getattr(expr.args[0], "name_hint", "").startswith(("lstm", "gru"))

    relax.analysis.post_order_visit(function, visit)
    return count


Run = Callable[..., tuple[list[Any], int]]


@pytest.fixture
def run(target: tvm.target.Target) -> Run:
    """Compile and run; the results, and how many calls are a layer."""

    def compiled(
        path: Path, kind: ModelFormat, *inputs: np.ndarray, is_written_out: bool = False
    ) -> tuple[list[Any], int]:
        graph = ingest(path, kind, {}).graph
        if is_written_out:  # as level 2 has it, whose rest may stay on the CPU
            graph = NnapiBackend().prepare(graph, 2)
        lowered, uncovered = lower_for_cpu(graph.module, target)
        assert uncovered == ()
        machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
        results = machine["main"](*[tvm.runtime.tensor(array) for array in inputs])
        if isinstance(results, tvm.runtime.Tensor):
            results = [results]
        return [result.numpy() for result in results], layer_calls(lowered["main"])

    return compiled


def onnx_lstm(
    direction: str, batch: int, hidden: int, length: int, has_state: bool
) -> onnx.ModelProto:
    random = np.random.default_rng(hidden)
    ways = 2 if direction == "bidirectional" else 1
    tensors = {
        "w": random.standard_normal((ways, 4 * hidden, 6)),
        "r": random.standard_normal((ways, 4 * hidden, hidden)) / hidden**0.5,
        "b": random.standard_normal((ways, 8 * hidden)),
        "h": random.standard_normal((ways, batch, hidden)),
        "c": random.standard_normal((ways, batch, hidden)),
    }
    states = ["", "h", "c"] if has_state else []
    node = helper.make_node(
        "LSTM", ["x", "w", "r", "b", *states], ["y", "yh", "yc"],
        hidden_size=hidden, direction=direction,
    )  # fmt: skip
    shapes = {"y": [length, ways, batch, hidden], "yh": [ways, batch, hidden]}
    shapes["yc"] = shapes["yh"]
    graph = helper.make_graph(
        [node],
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, batch, 6])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [numpy_helper.from_array(v.astype(np.float32), n) for n, v in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    ("direction", "batch", "hidden", "length", "has_state"),
    [
        ("forward", 1, 16, 9, False),
        ("reverse", 2, 5, 6, True),
        ("bidirectional", 3, 20, 5, False),
        ("bidirectional", 1, 64, 4, True),
    ],
)
def test_onnx(
    run: Run, tmp_path: Path,
    direction: str, batch: int, hidden: int, length: int, has_state: bool,
) -> None:  # fmt: skip
    """All states, the last one and the last cell; sizes that fill registers and that do not."""
    model = onnx_lstm(direction, batch, hidden, length, has_state)
    path = tmp_path / "lstm.onnx"
    onnx.save(model, path)
    feeds = feeds_of(model)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(feeds))
    for is_written_out in (False, True):
        results, calls = run(path, ModelFormat.ONNX, *feeds.values(), is_written_out=is_written_out)
        assert calls == (2 if direction == "bidirectional" else 1)
        for ours, expected in zip(results, wanted, strict=True):
            close(ours, expected, TOLERANCE)


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")  # of PyTorch's exporter
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_pytorch(run: Run, tmp_path: Path, kind: type[torch.nn.RNNBase]) -> None:
    class Tagger(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = kind(8, 12, num_layers=2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)[0]  # type: ignore[no-any-return]

    torch.manual_seed(0)
    network, data = Tagger().eval(), torch.randn(2, 7, 8)
    path = tmp_path / "lstm.pt2"
    torch.export.save(torch.export.export(network, (data,)), path)
    [result], calls = run(path, ModelFormat.PYTORCH, data.numpy())
    assert calls == 2  # one a layer
    with torch.no_grad():
        close(result, network(data).numpy(), TOLERANCE)
