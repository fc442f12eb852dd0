"""Vendor extensions through the C interface, on the example of NNAPI's documentation."""

from __future__ import annotations

import ctypes
import struct
from ctypes import byref, c_bool, c_char_p, c_int32, c_size_t, c_uint16, c_void_p

import numpy as np
import pytest

from tests.device_farm.simulator.conftest import LoadPhone
from tests.device_farm.simulator.nnapi import (
    BAD_DATA,
    NO_ERROR,
    TENSOR_FLOAT32,
    Compilation,
    Library,
    Model,
    NnapiError,
    operand_type,
)

NAME = b"com.example.fibonacci"
PHONE = "feature_level 4\ndevice dsp accelerator 1 4\nextension dsp com.example.fibonacci\n"
PLAIN = "feature_level 4\ndevice dsp accelerator 1 4\n"
SEQUENCE = [1, 1, 2, 3, 5, 8, 13, 21]
INT64, QUANT64, FIBONACCI = 0, 1, 0


def operand_code(model: Model, code: int, name: bytes = NAME) -> int:
    found = c_int32()
    model.library.call(
        "Model_getExtensionOperandType", model.handle, c_char_p(name), c_uint16(code), byref(found)
    )
    return found.value


def operation_code(model: Model, code: int = FIBONACCI) -> int:
    found = c_int32()
    model.library.call(
        "Model_getExtensionOperationType", model.handle, c_char_p(NAME), c_uint16(code),
        byref(found),
    )  # fmt: skip
    return found.value


def has_extension(phone: Library, device: str) -> bool:
    found = c_bool()
    handle = phone.devices()[device]
    phone.call("Device_getExtensionSupport", handle, c_char_p(NAME), byref(found))
    return found.value


def test_devices_say_what_they_have(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    assert has_extension(phone, "dsp")
    assert not has_extension(phone, "nnapi-reference")
    assert not has_extension(load_phone(PLAIN), "dsp")


def test_codes_have_the_extension_in_their_high_bits(load_phone: LoadPhone) -> None:
    with Model(load_phone(PHONE)) as model:
        codes = {operand_code(model, INT64), operand_code(model, QUANT64)}
        assert {code & 0xFFFF for code in codes} == {INT64, QUANT64}
        assert {code >> 16 for code in codes} == {operation_code(model) >> 16}
        assert all(code > 0xFFFF for code in codes)


def test_a_sequence_of_floats(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    with Model(phone) as model:
        n, y = model.input(TENSOR_FLOAT32, (1,)), model.operand(TENSOR_FLOAT32, (8,))
        model.operation(operation_code(model), [n], [y])
        model.finish([y])
        with (
            Compilation(model, [phone.devices()["dsp"]]) as compilation,
            compilation.finish().execution() as execution,
        ):
            execution.set_all([np.array([8], np.float32)], [(8,)])
            execution.compute()
            assert execution.outputs[0].tolist() == SEQUENCE


def test_a_sequence_of_the_extensions_own_types(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    with Model(phone) as model:
        n, y = model.input(operand_code(model, INT64), ()), model.operand(
            operand_code(model, QUANT64), (8,)
        )  # fmt: skip
        data = struct.pack("<dq", 0.5, 100)
        phone.call("Model_setOperandExtensionData", model.handle, y, data, c_size_t(len(data)))
        model.operation(operation_code(model), [n], [y])
        model.finish([y])
        with (
            Compilation(model, [phone.devices()["dsp"]]) as compilation,
            compilation.finish().execution() as execution,
        ):
            count, result = np.array([8], np.int64), np.zeros(8, np.int64)
            for function, array in (("setInput", count), ("setOutput", result)):
                phone.call(
                    f"Execution_{function}", execution.handle, 0, None,
                    array.ctypes.data_as(c_void_p), c_size_t(array.nbytes),
                )  # fmt: skip
            execution.compute()
            assert result.tolist() == [2 * number + 100 for number in SEQUENCE]


def test_a_device_without_it_does_not_take_the_operation(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    with Model(phone) as model:
        n, y = model.input(TENSOR_FLOAT32, (1,)), model.operand(TENSOR_FLOAT32, (8,))
        model.operation(operation_code(model), [n], [y])
        model.finish([y])
        taken = {}
        for name, device in phone.devices().items():
            flag = (c_bool * 1)()
            devices = (c_void_p * 1)(device)
            phone.call(
                "Model_getSupportedOperationsForDevices", model.handle, devices, 1, flag
            )  # fmt: skip
            taken[name] = flag[0]
    assert taken == {"dsp": True, "nnapi-reference": False}


@pytest.mark.parametrize(
    ("profile", "name"),
    [(PLAIN, NAME), (PHONE, b"com.example.other"), (PHONE + "forbid_extensions\n", NAME)],
)
def test_no_codes_where_it_cannot_be_used(load_phone: LoadPhone, profile: str, name: bytes) -> None:
    with Model(load_phone(profile)) as model, pytest.raises(NnapiError) as caught:
        operand_code(model, INT64, name)
    assert caught.value.code == BAD_DATA


def test_a_phone_that_forbids_it_still_says_it_is_there(load_phone: LoadPhone) -> None:
    assert has_extension(load_phone(PHONE + "forbid_extensions\n"), "dsp")


def test_extension_data_belongs_to_extension_types(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    with Model(phone) as model:
        plain = model.operand(TENSOR_FLOAT32, (1,))
        set_data = ("Model_setOperandExtensionData", model.handle)
        assert phone.code(*set_data, plain, b"12", c_size_t(2)) == BAD_DATA
        own = model.operand(operand_code(model, QUANT64), (4,))
        assert phone.code(*set_data, own, b"12", c_size_t(2)) == NO_ERROR
        assert phone.code(*set_data, 7, b"12", c_size_t(2)) == BAD_DATA


@pytest.mark.parametrize("n", [0.0, 2.5, 93.0])
def test_a_count_it_cannot_make_fails(load_phone: LoadPhone, n: float) -> None:
    phone = load_phone(PHONE)
    with Model(phone) as model:
        count = model.constant(np.array([n], np.float32))
        y = model.operand(TENSOR_FLOAT32, (0,))
        model.operation(operation_code(model), [count], [y])
        with pytest.raises(NnapiError) as caught:
            model.finish([y])
    assert (caught.value.function, caught.value.code) == ("Model_finish", BAD_DATA)


def test_operand_codes_of_no_extension_are_unknown(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    with Model(phone) as model:
        unknown = operand_type(operand_code(model, 9), (1,))
        assert phone.code("Model_addOperand", model.handle, ctypes.byref(unknown)) == BAD_DATA
