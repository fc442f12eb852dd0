"""Concats whose parts are written in place, against ONNX Runtime, twice with the same machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from tvm import relax

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.models import TOLERANCE, close, feeds_of, network, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest

Step = tuple[str, str, tuple[str, ...]]
CHANNELS = 8


def graph(*steps: Step, image: tuple[int, int] = (6, 7), batch: int = 1) -> onnx.ModelProto:
    """Steps of (result, operation, operands).

    A convolution's weight is the name of its number of channels: "8", or "8of16" from sixteen.
    """
    random, constants, nodes = np.random.default_rng(1), {}, []
    for result, kind, operands in steps:
        attributes: dict[str, object] = {}
        if kind == "Conv":
            outputs, _, inputs = operands[1].partition("of")
            shape = (int(outputs), int(inputs or CHANNELS), 1, 1)
            constants[operands[1]] = random.standard_normal(shape).astype(np.float32) / 3
        elif kind == "Concat":
            attributes["axis"] = 1
        elif kind == "MaxPool":
            attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        nodes.append(helper.make_node(kind, operands, [result], **attributes))
    if any("k" in operands for *_, operands in steps):
        constants["k"] = random.standard_normal((batch, CHANNELS, *image)).astype(np.float32)
    arrays = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return network(nodes, {"x": (batch, CHANNELS, *image)}, arrays)


def calls_concat(model: onnx.ModelProto, folder: Path, target: tvm.target.Target) -> bool:
    """Compares two runs; returns whether a kernel is left that does nothing but join."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    feeds = feeds_of(model)
    lowered, _ = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
    executable = executable_of(lowered, target).vm
    machine = relax.VirtualMachine(executable, tvm.cpu())
    tensors = [tvm.runtime.tensor(array) for array in feeds.values()]
    for _ in range(2):
        close(machine["main"](*tensors).numpy(), reference(path, feeds), TOLERANCE)
    return "concatenate" in executable.as_text()


FOUR = ("8", "12", "16", "8of8")

WRITTEN: dict[str, tuple[Step, ...]] = {
    "convolutions": (
        *((f"p{i}", "Conv", ("x", weight)) for i, weight in enumerate(FOUR)),
        ("j", "Concat", ("p0", "p1", "p2", "p3")), ("y", "Conv", ("j", "8of44")),
    ),
    "a pool among them": (
        ("p", "Conv", ("x", "8")), ("r", "MaxPool", ("p",)), ("q", "Conv", ("x", "16")),
        ("j", "Concat", ("r", "q")), ("y", "Conv", ("j", "8of24")),
    ),
    "one has another reader": (
        ("p", "Conv", ("x", "8")), ("q", "Conv", ("p", "16")), ("j", "Concat", ("p", "q")),
        ("y", "Conv", ("j", "8of24")),
    ),
    "one is a constant": (
        ("p", "Conv", ("x", "16")), ("j", "Concat", ("p", "k")), ("y", "Conv", ("j", "8of24")),
    ),
    "one is the input": (
        ("p", "Conv", ("x", "16")), ("q", "MaxPool", ("x",)), ("j", "Concat", ("q", "p")),
        ("y", "Conv", ("j", "8of24")),
    ),
    "one is a sum": (
        ("p", "Conv", ("x", "8")), ("q", "Conv", ("p", "8of8")), ("s", "Add", ("q", "p")),
        ("r", "Conv", ("x", "12")), ("j", "Concat", ("s", "r")), ("y", "Conv", ("j", "8of20")),
    ),
}  # fmt: skip

JOINED: dict[str, tuple[Step, ...]] = {
    "one stands twice": (
        ("p", "Conv", ("x", "8")), ("q", "Conv", ("x", "8of8")), ("j", "Concat", ("p", "q", "p")),
        ("y", "Conv", ("j", "8of24")),
    ),
    "one is a concat": (
        ("p", "Conv", ("x", "8")), ("q", "Conv", ("x", "16")), ("i", "Concat", ("p", "q")),
        ("r", "Conv", ("x", "28")), ("j", "Concat", ("i", "r")), ("y", "Conv", ("j", "8of52")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_parts_are_written_where_they_belong(
    name: str, tmp_path: Path, target: tvm.target.Target
) -> None:
    assert not calls_concat(graph(*WRITTEN[name]), tmp_path, target)


@pytest.mark.parametrize("name", JOINED)
def test_other_parts_are_joined(name: str, tmp_path: Path, target: tvm.target.Target) -> None:
    assert calls_concat(graph(*JOINED[name]), tmp_path, target)


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from([1, 3]), st.integers(1, 9), st.lists(st.integers(1, 40), min_size=2, max_size=4)
)
def test_drawn_widths(
    target: tvm.target.Target, tmp_path: Path, batch: int, size: int, widths: list[int]
) -> None:
    parts = [(f"p{i}", "Conv", ("x", f"{width}of8" + " " * i)) for i, width in enumerate(widths)]
    names = tuple(name for name, *_ in parts)
    joined = (("j", "Concat", names), ("y", "Conv", ("j", f"8of{sum(widths)}")))
    model = graph(*parts, *joined, image=(size, size + 1), batch=batch)
    assert not calls_concat(model, tmp_path, target)
