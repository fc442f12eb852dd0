"""Kernels that write over their operands, against ONNX Runtime, twice with the same machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper, numpy_helper
from tvm import relax

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.models import TOLERANCE, close, feeds_of, network, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest

IMAGE = (1, 16, 8, 8)
IMAGE_BYTES = 4 * 16 * 8 * 8


def graph(*steps: tuple[str, str, tuple[str, ...]]) -> onnx.ModelProto:
    """Steps of (result, operation, operands); `w` is the weight of convolutions."""
    weight = np.random.default_rng(1).standard_normal((16, 16, 1, 1)).astype(np.float32) / 4
    constants = {
        "w": weight,
        "k": np.random.default_rng(2).standard_normal(IMAGE).astype(np.float32),
        "flat": np.array([1, 1, 128, 8]),
        "image": np.array(IMAGE),
    }
    nodes = [
        helper.make_node(kind, operands, [result], **_ATTRIBUTES.get(kind, {}))
        for result, kind, operands in steps
    ]
    arrays = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return network(nodes, {"x": IMAGE}, arrays)


_ATTRIBUTES = {"Transpose": {"perm": [0, 1, 3, 2]}}


def check(model: onnx.ModelProto, folder: Path, target: tvm.target.Target) -> int:
    """Compares two runs; returns the bytes of all intermediate tensors."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    feeds = feeds_of(model)
    lowered, _ = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
    executable = executable_of(lowered, target)
    machine = relax.VirtualMachine(executable.vm, tvm.cpu())
    tensors = [tvm.runtime.tensor(array) for array in feeds.values()]
    for _ in range(2):
        close(machine["main"](*tensors).numpy(), reference(path, feeds), TOLERANCE)
    for tensor, array in zip(tensors, feeds.values(), strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
    return executable.activation_bytes


def test_a_residual_takes_the_place_of_its_branch(
    tmp_path: Path, target: tvm.target.Target
) -> None:
    used_bytes = check(
        graph(
            ("a", "Conv", ("x", "w")),
            ("b", "Conv", ("a", "w")),
            ("c", "Conv", ("b", "w")),
            ("s", "Add", ("c", "a")),
            ("y", "Conv", ("s", "w")),
        ),
        tmp_path,
        target,
    )
    assert used_bytes == 2 * IMAGE_BYTES  # the branch and the convolutions beside it


CASES = {
    "read again": (
        ("a", "Conv", ("x", "w")), ("b", "Conv", ("a", "w")), ("s", "Add", ("b", "a")),
        ("c", "Conv", ("s", "w")), ("t", "Mul", ("c", "a")), ("y", "Conv", ("t", "w")),
    ),
    "read again reshaped": (
        ("a", "Conv", ("x", "w")), ("r", "Reshape", ("a", "flat")), ("b", "Conv", ("a", "w")),
        ("s", "Add", ("b", "a")), ("c", "Conv", ("s", "w")), ("u", "Reshape", ("r", "image")),
        ("t", "Mul", ("c", "u")), ("y", "Conv", ("t", "w")),
    ),
    "read at other places": (
        ("a", "Conv", ("x", "w")), ("r", "Transpose", ("a",)), ("s", "Add", ("a", "r")),
        ("y", "Conv", ("s", "w")),
    ),
    "twice": (("a", "Conv", ("x", "w")), ("s", "Mul", ("a", "a")), ("y", "Conv", ("s", "w"))),
    "input": (("a", "Conv", ("x", "w")), ("s", "Add", ("a", "x")), ("y", "Conv", ("s", "w"))),
    "constant": (("a", "Conv", ("x", "w")), ("s", "Add", ("a", "k")), ("y", "Conv", ("s", "w"))),
    "output": (("a", "Conv", ("x", "w")), ("b", "Conv", ("a", "w")), ("y", "Add", ("b", "a"))),
    "one after the other": (
        ("a", "Conv", ("x", "w")), ("b", "Conv", ("a", "w")), ("s", "Add", ("b", "a")),
        ("c", "Conv", ("s", "w")), ("t", "Add", ("c", "s")), ("d", "Conv", ("t", "w")),
        ("y", "Mul", ("d", "t")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wanted_later_stays(name: str, tmp_path: Path, target: tvm.target.Target) -> None:
    check(graph(*CASES[name]), tmp_path, target)
