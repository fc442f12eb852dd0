"""The two quantized cells against the same cells in real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_size_t, c_void_p

import numpy as np
import pytest

from tests.device_farm.simulator.nnapi import (
    BAD_DATA,
    FLOAT32,
    INT32,
    TENSOR_INT32,
    TENSOR_QUANT8,
    TENSOR_QUANT8_SIGNED,
    Array,
    Compilation,
    Library,
    Model,
    NnapiError,
)

QUANTIZED_16BIT_LSTM, QUANTIZED_LSTM = 73, 95
QUANT16_SYMM, QUANT8_SYMM = 7, 13
BATCH, DEPTH, UNITS = 3, 5, 4

Gates = list[Array]


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def set_value(model: Model, operand: int, value: Array) -> int:
    model._alive.append(value)
    pointer, size = value.ctypes.data_as(c_void_p), c_size_t(value.nbytes)
    model.library.call("Model_setOperandValue", model.handle, operand, pointer, size)
    return operand


def omitted(model: Model, type_: int, dims: Sequence[int], scale: float = 0.0) -> int:
    operand = model.operand(type_, dims, scale)
    model.library.call("Model_setOperandValue", model.handle, operand, None, c_size_t(0))
    return operand


def run(model: Model, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    with Compilation(model) as compilation, compilation.finish().execution() as execution:
        for function, arrays in (("setInput", inputs), ("setOutput", outputs)):
            for index, array in enumerate(arrays):
                pointer, size = array.ctypes.data_as(c_void_p), c_size_t(array.nbytes)
                model.library.call(
                    f"Execution_{function}", execution.handle, index, None, pointer, size
                )
        execution.compute()


def drawn(rng: np.random.Generator, shape: Sequence[int], low: int, high: int) -> Array:
    return np.asarray(rng.integers(low, high, shape))


def test_the_cell_on_bytes(library: Library) -> None:
    rng = np.random.default_rng(1)
    scale, zero = 0.01, 120
    weights = [drawn(rng, (UNITS, DEPTH), 0, 256).astype(np.uint8) for _ in range(4)]
    recurrent = [drawn(rng, (UNITS, UNITS), 0, 256).astype(np.uint8) for _ in range(4)]
    biases = [drawn(rng, (UNITS,), -9000, 9000).astype(np.int32) for _ in range(4)]
    x = drawn(rng, (BATCH, DEPTH), 0, 256).astype(np.uint8)
    cell = drawn(rng, (BATCH, UNITS), -4000, 4000).astype(np.int16)
    state = drawn(rng, (BATCH, UNITS), 0, 256).astype(np.uint8)
    with Model(library) as model:
        operands = [model.input(TENSOR_QUANT8, x.shape, 1 / 128, 128)]
        operands += [model.constant(each, scale, zero) for each in [*weights, *recurrent]]
        operands += [model.constant(each, scale / 128) for each in biases]
        operands += [model.input(QUANT16_SYMM, cell.shape, 1 / 2048)]
        operands += [model.input(TENSOR_QUANT8, state.shape, 1 / 128, 128)]
        results = [
            model.operand(QUANT16_SYMM, cell.shape, 1 / 2048),
            model.operand(TENSOR_QUANT8, state.shape, 1 / 128, 128),
        ]
        model.operation(QUANTIZED_16BIT_LSTM, operands, results)
        model.finish(results)
        new_cell, out = np.zeros_like(cell), np.zeros_like(state)
        run(model, [x, cell, state], [new_cell, out])

    real_x, real_state = (x - 128.0) / 128, (state - 128.0) / 128
    sums = [
        real_x @ ((w - float(zero)) * scale).T
        + real_state @ ((r - float(zero)) * scale).T
        + b * scale / 128
        for w, r, b in zip(weights, recurrent, biases, strict=True)
    ]
    expected = sigmoid(sums[1]) * cell / 2048 + sigmoid(sums[0]) * np.tanh(sums[2])
    assert np.abs(new_cell / 2048 - expected).max() < 3 / 2048
    expected_out = np.clip(sigmoid(sums[3]) * np.tanh(expected), -1, 127 / 128)
    assert np.abs((out - 128.0) / 128 - expected_out).max() < 1.5 / 128


class SignedCell:
    """QUANTIZED_LSTM without layer normalization: an instance is one drawn model."""

    input_scale, weight_scale, state_scale, cell_scale = 1 / 128, 0.01, 1 / 128, 1 / 2048
    peephole_scale, hidden_scale, projection_scale, hidden_zero = 1 / 32768, 1 / 128, 0.004, 3

    def __init__(self, seed: int, outputs: int, clip: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.outputs, self.clip = outputs, clip
        self.weights = self._bytes(rng, 4, (UNITS, DEPTH))
        self.recurrent = self._bytes(rng, 4, (UNITS, outputs))
        self.peephole = [drawn(rng, (UNITS,), -9000, 9000).astype(np.int16) for _ in range(3)]
        self.biases = [drawn(rng, (UNITS,), -9000, 9000).astype(np.int32) for _ in range(4)]
        self.projection = self._bytes(rng, 1, (outputs, UNITS))[0]
        self.x = self._bytes(rng, 1, (BATCH, DEPTH))[0]
        self.state = self._bytes(rng, 1, (BATCH, outputs))[0]
        self.cell = drawn(rng, (BATCH, UNITS), -4000, 4000).astype(np.int16)

    @staticmethod
    def _bytes(rng: np.random.Generator, count: int, shape: Sequence[int]) -> Gates:
        return [drawn(rng, shape, -127, 128).astype(np.int8) for _ in range(count)]

    def build(self, model: Model, cell_scale: float) -> list[int]:
        """Returns the outputs."""
        signed = (TENSOR_QUANT8_SIGNED, self.x.shape, self.input_scale)
        operands = [model.input(*signed)]
        for each in [*self.weights, *self.recurrent]:
            operand = model.operand(QUANT8_SYMM, each.shape, self.weight_scale)
            operands.append(set_value(model, operand, each))
        for each in self.peephole:
            operand = model.operand(QUANT16_SYMM, each.shape, self.peephole_scale)
            operands.append(set_value(model, operand, each))
        bias_scale = self.input_scale * self.weight_scale
        operands += [model.constant(each, bias_scale) for each in self.biases]
        if self.outputs == UNITS:
            operands.append(omitted(model, QUANT8_SYMM, self.projection.shape, 1.0))
        else:
            operand = model.operand(QUANT8_SYMM, self.projection.shape, self.projection_scale)
            operands.append(set_value(model, operand, self.projection))
        operands.append(omitted(model, TENSOR_INT32, (self.outputs,)))
        operands.append(model.input(TENSOR_QUANT8_SIGNED, self.state.shape, self.state_scale))
        operands.append(model.input(QUANT16_SYMM, self.cell.shape, cell_scale))
        operands += [omitted(model, QUANT16_SYMM, (UNITS,), 1.0) for _ in range(4)]
        reals = [self.clip, self.clip, *[1.0] * 4]
        operands += [self._scalar(model, value) for value in reals]
        operand = model.operand(INT32)
        operands.append(set_value(model, operand, np.array([self.hidden_zero], np.int32)))
        operands.append(self._scalar(model, self.hidden_scale))
        signed_out = (TENSOR_QUANT8_SIGNED, self.state.shape, self.state_scale)
        results = [
            model.operand(*signed_out),
            model.operand(QUANT16_SYMM, self.cell.shape, cell_scale),
            model.operand(*signed_out),
        ]
        model.operation(QUANTIZED_LSTM, operands, results)
        return results

    @staticmethod
    def _scalar(model: Model, value: float) -> int:
        return set_value(model, model.operand(FLOAT32), np.array([value], np.float32))

    def real_cell(self) -> tuple[Array, Array]:
        """Cell state and hidden values in real numbers."""
        x, state = self.x * self.input_scale, self.state * self.state_scale
        cell = self.cell * self.cell_scale
        peep = [each * self.peephole_scale for each in self.peephole]
        sums = [
            x @ (w * self.weight_scale).T
            + state @ (r * self.weight_scale).T
            + b * self.input_scale * self.weight_scale
            for w, r, b in zip(self.weights, self.recurrent, self.biases, strict=True)
        ]
        kept = sigmoid(sums[1] + peep[1] * cell) * cell
        new = kept + sigmoid(sums[0] + peep[0] * cell) * np.tanh(sums[2])
        if self.clip:
            new = np.clip(new, -self.clip, self.clip)
        return new, sigmoid(sums[3] + peep[2] * new) * np.tanh(new)


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_the_signed_cell_with_projection_and_peepholes(library: Library, clip: float) -> None:
    cell = SignedCell(2, outputs=3, clip=clip)
    with Model(library) as model:
        model.finish(cell.build(model, cell.cell_scale))
        state, new, out = np.zeros_like(cell.state), np.zeros_like(cell.cell), cell.state.copy()
        run(model, [cell.x, cell.state, cell.cell], [state, new, out])
    expected, hidden = cell.real_cell()
    assert np.abs(new * cell.cell_scale - expected).max() < 4 * cell.cell_scale
    projected = hidden @ (cell.projection * cell.projection_scale).T
    if clip:
        projected = np.clip(projected, -clip, clip)
    assert np.abs(out * cell.state_scale - projected).max() < 2 * cell.state_scale
    assert state.tolist() == out.tolist()


def test_the_signed_cell_without_projection_gives_its_hidden_integers(library: Library) -> None:
    cell = SignedCell(3, outputs=UNITS)
    with Model(library) as model:
        model.finish(cell.build(model, cell.cell_scale))
        state, new, out = np.zeros_like(cell.state), np.zeros_like(cell.cell), cell.state.copy()
        run(model, [cell.x, cell.state, cell.cell], [state, new, out])
    _, hidden = cell.real_cell()
    assert np.abs((out - float(cell.hidden_zero)) * cell.hidden_scale - hidden).max() < 0.012


@pytest.mark.parametrize("scale", [0.003, 1 / 65536, 1 / 128])
def test_the_signed_cells_state_needs_a_power_of_two(library: Library, scale: float) -> None:
    cell = SignedCell(4, outputs=3)
    with Model(library) as model, pytest.raises(NnapiError) as caught:
        model.finish(cell.build(model, scale))
    assert (caught.value.function, caught.value.code) == ("Model_finish", BAD_DATA)
