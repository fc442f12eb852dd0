"""Bytes that are moved between quantized operations, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import tvm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from tvm import relax

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.models import Array, feeds_of, network, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest

STEP, OTHER_STEP = 0.05, 0.03
ZERO = 120


class Quantized:
    """A model in QDQ form, written node by node; tensors are named by strings."""

    def __init__(self, weight_seed: int = 2) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(weight_seed)

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0]

    def rounded(self, value: str, step: float = STEP) -> str:
        scale, zero = self.constant(np.float32(step)), self.constant(np.uint8(ZERO))
        integers = self.op("QuantizeLinear", value, scale, zero)
        return self.op("DequantizeLinear", integers, scale, zero)

    def convolution(self, value: str, inputs: int, outputs: int, step: float = STEP) -> str:
        weight = self._random.integers(-127, 128, (outputs, inputs, 1, 1), np.int8)
        scale = self.constant(np.full(outputs, 0.02 / inputs**0.5, np.float32))
        zeros = self.constant(np.zeros(outputs, np.int8))
        real = self.op("DequantizeLinear", self.constant(weight), scale, zeros, axis=0)
        return self.rounded(self.op("Conv", value, real), step)

    def shuffle(self, value: str, image: tuple[int, int, int, int], groups: int) -> str:
        batch, channels, height, width = image
        apart = np.array([batch, groups, channels // groups, height, width])
        value = self.rounded(self.op("Reshape", value, self.constant(apart)))
        value = self.rounded(self.op("Transpose", value, perm=[0, 2, 1, 3, 4]))
        return self.rounded(self.op("Reshape", value, self.constant(np.array(image))))

    def model(self, result: str, shape: tuple[int, ...]) -> onnx.ModelProto:
        last = helper.make_node("Identity", [result], ["y"])
        return network([*self.nodes, last], {"x": shape}, self.constants)


def shuffled(batch: int, half: int, size: int) -> onnx.ModelProto:
    """ShuffleNetV2's unit: shuffle, split, one half convolved, concat."""
    made, image = Quantized(), (batch, 2 * half, size, size + 1)
    value = made.convolution(made.rounded("x"), 2 * half, 2 * half)
    value = made.shuffle(value, image, 2)
    first = made.op("Split", value, made.constant(np.array([half, half])), outputs=2, axis=1)
    second = made.rounded(first.removesuffix("0") + "1")
    computed = made.convolution(made.rounded(first), half, half, OTHER_STEP)
    joined = made.rounded(made.op("Concat", second, computed, axis=1))
    return made.model(made.shuffle(joined, image, 2), image)


def check(
    model: onnx.ModelProto, folder: Path, target: tvm.target.Target
) -> dict[str, tvm.tirx.PrimFunc]:
    """Compiles and compares; returns the kernels."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    feeds = feeds_of(model)
    lowered, uncovered = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
    assert uncovered == ()
    machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
    ours = machine["main"](*[tvm.runtime.tensor(a) for a in feeds.values()]).numpy()
    expected = reference(path, feeds)
    steps = np.abs(np.rint((ours - expected) / STEP))
    assert steps.max() <= 1
    assert np.mean(steps > 0) < 0.02
    assert np.unique(expected).size > 3
    functions = {v.name_hint: f for v, f in lowered.functions.items()}
    return {n: f for n, f in functions.items() if isinstance(f, tvm.tirx.PrimFunc)}


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from([1, 3]), st.integers(1, 40), st.integers(2, 9))
def test_a_channel_shuffle_moves_bytes(
    target: tvm.target.Target, tmp_path: Path, batch: int, half: int, size: int
) -> None:
    kernels = check(shuffled(batch, half, size), tmp_path, target)
    moving = [
        f.script() for name, f in kernels.items() if "conv2d" not in name and "reshape" in name
    ]
    # What follows the last shuffle is the network's output, in real numbers and NCHW.
    assert sum("float32" in script for script in moving) <= 1


def test_what_is_also_wanted_as_real_numbers_is_right_both_ways(
    target: tvm.target.Target, tmp_path: Path
) -> None:
    made, image = Quantized(), (1, 6, 5, 4)
    value = made.rounded("x")
    turned = made.op("Transpose", value, perm=[0, 1, 3, 2])
    again = made.op("Transpose", made.rounded(turned), perm=[0, 1, 3, 2])
    total = made.op("Add", turned, made.op("Transpose", made.rounded(again), perm=[0, 1, 3, 2]))
    check(made.model(made.rounded(total, 2 * STEP), image), tmp_path, target)


def test_the_largest_byte_stands_for_the_largest_number(
    target: tvm.target.Target, tmp_path: Path
) -> None:
    made, image = Quantized(), (1, 20, 9, 8)
    value = made.convolution(made.rounded("x"), 20, 20)
    pooled = made.op("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    kernels = check(made.model(made.rounded(pooled), image), tmp_path, target)
    (pool,) = (f for name, f in kernels.items() if "max_pool" in name)
    assert 'T.Buffer((T.int64(1), T.int64(9), T.int64(8), T.int64(20)), "uint8")' in pool.script()


def test_the_nearest_pixel_is_moved(target: tvm.target.Target, tmp_path: Path) -> None:
    made, image = Quantized(), (1, 20, 5, 4)
    value = made.convolution(made.rounded("x"), 20, 20)
    scales = made.constant(np.array([1, 1, 2, 2], np.float32))
    resized = made.op("Resize", value, "", scales, mode="nearest")
    kernels = check(made.model(made.rounded(resized), image), tmp_path, target)
    (function,) = (f for name, f in kernels.items() if "resize" in name)
    assert '"uint8")' in function.script().split("):")[0].split("resize")[0]


def test_parts_of_other_scales_are_requantized_one_by_one(
    target: tvm.target.Target, tmp_path: Path
) -> None:
    made, image = Quantized(), (2, 5, 6, 7)
    value = made.rounded("x")
    parts = [made.convolution(value, 5, 5, step) for step in (STEP, OTHER_STEP, 0.02)]
    joined = made.op("Concat", *parts, value, axis=1)
    check(made.model(made.rounded(joined), image), tmp_path, target)
