"""Result codes of calls out of order, with nulls and with bad data."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_uint32, c_uint64, c_void_p

import numpy as np
import pytest

from tests.device_farm.simulator import nnapi
from tests.device_farm.simulator.nnapi import (
    BAD_DATA,
    BAD_STATE,
    UNEXPECTED_NULL,
    Compilation,
    Library,
    Model,
    NnapiError,
)


def adder(library: Library, dims: tuple[int, ...] = (2, 3)) -> Model:
    model = Model(library)
    x = model.input(nnapi.TENSOR_FLOAT32, dims)
    y = model.input(nnapi.TENSOR_FLOAT32, dims)
    out = model.operand(nnapi.TENSOR_FLOAT32, dims)
    model.operation(nnapi.ADD, [x, y, model.scalar(0)], [out])
    return model.finish([out])


def failure(error: pytest.ExceptionInfo[NnapiError]) -> tuple[str, int]:
    return error.value.function, error.value.code


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("Model_create", [None]),
        ("Model_finish", [None]),
        ("Model_addOperand", [None, None]),
        ("Compilation_create", [None, None]),
        ("Compilation_finish", [None]),
        ("Execution_create", [None, None]),
        ("Execution_compute", [None]),
        ("Event_wait", [None]),
        ("_getDeviceCount", [None]),
        ("Memory_createFromFd", [c_size_t(1), 1, 0, c_size_t(0), None]),
    ],
)
def test_null_is_refused(library: Library, function: str, args: list[object]) -> None:
    assert library.code(function, *args) == UNEXPECTED_NULL


def test_a_finished_model_takes_nothing_more(library: Library) -> None:
    with adder(library) as model:
        with pytest.raises(NnapiError) as error:
            model.operand(nnapi.TENSOR_FLOAT32, (1,))
        assert failure(error) == ("Model_addOperand", BAD_STATE)
        assert library.code("Model_finish", model.handle) == BAD_STATE


def test_an_empty_model_is_bad_data(library: Library) -> None:
    with Model(library) as model:
        assert library.code("Model_finish", model.handle) == BAD_DATA


def test_an_unfinished_model_cannot_be_compiled(library: Library) -> None:
    with Model(library) as model, pytest.raises(NnapiError) as error:
        Compilation(model)
    assert failure(error) == ("Compilation_create", BAD_STATE)


def test_an_unfinished_compilation_cannot_be_executed(library: Library) -> None:
    with adder(library) as model, Compilation(model) as compilation:
        with pytest.raises(NnapiError) as error:
            compilation.execution()
        assert failure(error) == ("Execution_create", BAD_STATE)
        compilation.finish()
        assert library.code("Compilation_finish", compilation.handle) == BAD_STATE
        assert library.code("Compilation_setPreference", compilation.handle, 1) == BAD_STATE


def test_an_execution_runs_once_unless_reusable(library: Library) -> None:
    ones = np.ones((2, 3), np.float32)
    with adder(library) as model, Compilation(model) as compilation:
        compilation.finish()
        with compilation.execution() as once:
            once.set_all([ones, ones], [(2, 3)])
            once.compute()
            assert library.code("Execution_compute", once.handle) == BAD_STATE
        with compilation.execution() as again:
            library.call("Execution_setReusable", again.handle, True)
            again.set_all([ones, ones], [(2, 3)])
            again.compute()
            again.compute()
            np.testing.assert_array_equal(again.outputs[0], 2 * ones)


def test_arguments_are_checked(library: Library) -> None:
    ones = np.ones((2, 3), np.float32)
    with (
        adder(library) as model,
        Compilation(model) as compilation,
        compilation.finish().execution() as execution,
    ):
        assert library.code("Execution_compute", execution.handle) == BAD_DATA
        pointer = ones.ctypes.data_as(c_void_p)
        set_input = ("Execution_setInput", execution.handle)
        assert library.code(*set_input, 2, None, pointer, c_size_t(24)) == BAD_DATA
        assert library.code(*set_input, 0, None, pointer, c_size_t(20)) == BAD_DATA
        assert library.code(*set_input, 0, None, None, c_size_t(24)) == UNEXPECTED_NULL
        wrong = nnapi.operand_type(nnapi.TENSOR_FLOAT32, (3, 2))
        assert library.code(*set_input, 0, byref(wrong), pointer, c_size_t(24)) == BAD_DATA
        execution.set_input(0, ones)
        assert library.code(*set_input, 0, None, pointer, c_size_t(24)) == BAD_STATE
        rank = c_uint32()
        question = ("Execution_getOutputOperandRank", execution.handle, 0, byref(rank))
        assert library.code(*question) == BAD_STATE


@pytest.mark.parametrize(
    ("type_", "dims", "scale", "zero_point"),
    [
        (nnapi.TENSOR_QUANT8, (2,), 0.0, 0),  # no scale
        (nnapi.TENSOR_QUANT8, (2,), 0.5, 256),
        (nnapi.TENSOR_QUANT8_SIGNED, (2,), 0.5, 200),
        (nnapi.TENSOR_FLOAT32, (2,), 0.5, 0),
        (nnapi.FLOAT32, (2,), 0.0, 0),  # a scalar with a shape
        (0x10000, (2,), 0.0, 0),  # an extension's
        (99, (), 0.0, 0),
    ],
)
def test_bad_operand_types_are_refused(
    library: Library, type_: int, dims: tuple[int, ...], scale: float, zero_point: int
) -> None:
    with Model(library) as model, pytest.raises(NnapiError) as error:
        model.operand(type_, dims, scale, zero_point)
    assert error.value.code == BAD_DATA


def test_values_must_fit_their_operand(library: Library) -> None:
    with Model(library) as model:
        index = model.operand(nnapi.TENSOR_FLOAT32, (2,))
        data = np.zeros(2, np.float32).ctypes.data_as(c_void_p)
        set_value = ("Model_setOperandValue", model.handle)
        assert library.code(*set_value, index, data, c_size_t(4)) == BAD_DATA
        assert library.code(*set_value, 7, data, c_size_t(8)) == BAD_DATA


def test_shapes_are_checked_when_the_model_is_finished(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (2, 3))
        y = model.input(nnapi.TENSOR_FLOAT32, (2, 4))
        out = model.operand(nnapi.TENSOR_FLOAT32, (2, 4))
        model.operation(nnapi.ADD, [x, y, model.scalar(0)], [out])
        with pytest.raises(NnapiError) as error:
            model.finish([out])
    assert failure(error) == ("Model_finish", BAD_DATA)


def test_a_cycle_is_refused(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (2,))
        a = model.operand(nnapi.TENSOR_FLOAT32, (2,))
        b = model.operand(nnapi.TENSOR_FLOAT32, (2,))
        none = model.scalar(0)
        model.operation(nnapi.ADD, [x, b, none], [a])
        model.operation(nnapi.ADD, [x, a, none], [b])
        with pytest.raises(NnapiError) as error:
            model.finish([b])
    assert failure(error) == ("Model_finish", BAD_DATA)


def test_operations_may_be_added_in_any_order(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (3,))
        middle = model.operand(nnapi.TENSOR_FLOAT32, (3,))
        out = model.operand(nnapi.TENSOR_FLOAT32, (3,))
        model.operation(nnapi.RELU, [middle], [out])
        model.operation(nnapi.ABS, [x], [middle])
        model.finish([out])
        with Compilation(model) as compilation, compilation.finish().execution() as execution:
            execution.set_all([np.array([-1, 2, -3], np.float32)], [(3,)])
            execution.compute()
            np.testing.assert_array_equal(execution.outputs[0], [1, 2, 3])


def test_unknown_operations_and_extensions_are_refused(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (3,))
        out = model.operand(nnapi.TENSOR_FLOAT32, (3,))
        for code in (106, 0x10003, -1):
            with pytest.raises(NnapiError) as error:
                model.operation(code, [x], [out])
            assert error.value.code == BAD_DATA


def test_timing_needs_one_chosen_device(library: Library) -> None:
    ones = np.ones((2, 3), np.float32)
    device = library.devices()["nnapi-reference"]
    with adder(library) as model:
        with Compilation(model) as compilation, compilation.finish().execution() as execution:
            with pytest.raises(NnapiError) as error:
                nnapi.set_measure_timing(execution)
            assert error.value.code == BAD_DATA
        with Compilation(model, [device]) as chosen, chosen.finish().execution() as execution:
            nnapi.set_measure_timing(execution)
            execution.set_all([ones, ones], [(2, 3)])
            duration = c_uint64()
            ask = ("Execution_getDuration", execution.handle, 1, byref(duration))
            assert library.code(*ask) == BAD_STATE
            execution.compute()
            library.call(*ask)
            assert 0 < duration.value < 10**9
