"""Ways to execute: shapes known at run time, events, bursts, memories, threads, loops."""

from __future__ import annotations

import mmap
import tempfile
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_size_t, c_void_p

import numpy as np
import pytest

from tests.device_farm.simulator import nnapi
from tests.device_farm.simulator.nnapi import Compilation, Library, Model
from tests.device_farm.simulator.test_life_cycle import adder


def test_output_shape_follows_the_input(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (0, 3))
        out = model.operand(nnapi.TENSOR_FLOAT32, (0, 0))
        model.operation(
            nnapi.ADD, [x, model.constant(np.ones(3, np.float32)), model.scalar(0)], [out]
        )
        model.finish([out])
        with Compilation(model) as compilation, compilation.finish().execution() as execution:
            execution.set_all([np.zeros((4, 3), np.float32)], [(4, 3)])
            execution.compute()
            assert execution.output_dims(0) == (4, 3)
            np.testing.assert_array_equal(execution.outputs[0], np.ones((4, 3)))


def test_a_small_output_buffer_is_told_the_shape(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (0, 3))
        out = model.operand(nnapi.TENSOR_FLOAT32, (0, 3))
        model.operation(nnapi.RELU, [x], [out])
        model.finish([out])
        with Compilation(model) as compilation, compilation.finish().execution() as execution:
            execution.set_all([np.ones((4, 3), np.float32)], [(2, 3)])
            code = library.code("Execution_compute", execution.handle)
            assert code == nnapi.OUTPUT_INSUFFICIENT_SIZE
            dims = (nnapi.c_uint32 * 2)()
            ask = ("Execution_getOutputOperandDimensions", execution.handle, 0, dims)
            assert library.code(*ask) == nnapi.OUTPUT_INSUFFICIENT_SIZE
            assert tuple(dims) == (4, 3)


def test_events_and_bursts_give_the_same_answer(library: Library) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with adder(library) as model, Compilation(model) as compilation:
        compilation.finish()
        with compilation.execution() as execution:
            execution.set_all([x, x], [(2, 3)])
            event = c_void_p()
            library.call("Execution_startCompute", execution.handle, byref(event))
            library.call("Event_wait", event)
            library.free("Event", event)
            np.testing.assert_array_equal(execution.outputs[0], 2 * x)
        with compilation.execution() as execution:
            burst = c_void_p()
            library.call("Burst_create", compilation.handle, byref(burst))
            execution.set_all([x, x], [(2, 3)])
            library.call("Execution_burstCompute", execution.handle, burst)
            library.free("Burst", burst)
            np.testing.assert_array_equal(execution.outputs[0], 2 * x)


def test_values_and_arguments_from_a_file(library: Library) -> None:
    data = np.arange(8, dtype=np.float32)
    with tempfile.TemporaryFile() as file:
        file.write(b"\0" * 4096 + data.tobytes())
        file.flush()
        memory = c_void_p()
        library.call(
            "Memory_createFromFd",
            c_size_t(32),
            mmap.PROT_READ | mmap.PROT_WRITE,
            file.fileno(),
            c_size_t(4096),
            byref(memory),
        )
        with Model(library) as model:
            x = model.input(nnapi.TENSOR_FLOAT32, (4,))
            weights = model.operand(nnapi.TENSOR_FLOAT32, (4,))
            set_value = ("Model_setOperandValueFromMemory", model.handle, weights, memory)
            assert library.code(*set_value, c_size_t(20), c_size_t(16)) == nnapi.BAD_DATA
            library.call(*set_value, c_size_t(16), c_size_t(16))
            out = model.operand(nnapi.TENSOR_FLOAT32, (4,))
            model.operation(nnapi.ADD, [x, weights, model.scalar(0)], [out])
            model.finish([out])
            with Compilation(model) as compilation, compilation.finish().execution() as execution:
                library.call(
                    "Execution_setInputFromMemory",
                    *(execution.handle, 0, None, memory, c_size_t(0), c_size_t(16)),
                )
                result = execution.set_output(0, (4,))
                execution.compute()
                np.testing.assert_array_equal(result, data[:4] + data[4:])
        library.free("Memory", memory)


def test_executions_of_one_compilation_run_in_parallel(library: Library) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((64, 128), np.float32)
    inputs = rng.standard_normal((8, 16, 128), np.float32)
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (16, 128))
        out = model.operand(nnapi.TENSOR_FLOAT32, (16, 64))
        bias = model.constant(np.zeros(64, np.float32))
        model.operation(
            nnapi.FULLY_CONNECTED, [x, model.constant(weights), bias, model.scalar(0)], [out]
        )
        model.finish([out])
        with Compilation(model) as compilation:
            compilation.finish()

            def run(value: nnapi.Array) -> nnapi.Array:
                with compilation.execution() as execution:
                    execution.set_all([value], [(16, 64)])
                    execution.compute()
                    return execution.outputs[0].copy()

            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(run, inputs))
    np.testing.assert_allclose(answers, inputs @ weights.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padded", [True, False])
def test_padding_admits_longer_buffers(library: Library, padded: bool) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (3,))
        out = model.operand(nnapi.TENSOR_FLOAT32, (3,))
        model.operation(nnapi.ABS, [x], [out])
        model.finish([out])
        with Compilation(model) as compilation, compilation.finish().execution() as execution:
            library.call("Execution_enableInputAndOutputPadding", execution.handle, padded)
            buffer = np.full(16, -2, np.float32)
            code = library.code(
                "Execution_setInput",
                *(execution.handle, 0, None, buffer.ctypes.data_as(c_void_p), c_size_t(64)),
            )
            assert code == (nnapi.NO_ERROR if padded else nnapi.BAD_DATA)
