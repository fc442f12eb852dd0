"""The library as a support-library driver: the table an app gets from it, entry by entry."""

from __future__ import annotations

import ctypes
from ctypes import (
    byref,
    c_bool,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_uint16,
    c_uint32,
    c_void_p,
)

import pytest

from tests.device_farm.simulator.conftest import LoadPhone
from tests.device_farm.simulator.nnapi import BAD_DATA, NO_ERROR, UNEXPECTED_NULL, Library

PHONE = "feature_level 6\ndevice dsp accelerator 1 5\nextension dsp com.example.fibonacci\n"

# Positions in the ABI's table, counted in pointers behind the level.
BURST_CREATE, DEVICE_GET_NAME, EXECUTION_COMPUTE, MODEL_CREATE, MODEL_FREE = 0, 15, 24, 53, 55
GET_DEVICE, GET_DEVICE_COUNT, GET_RUNTIME_LEVEL = 67, 68, 70
SET_CACHING_FROM_FDS, CACHE_FILES_NEEDED, PERFORMANCE, EACH_PERFORMANCE = 71, 72, 73, 74
EXTENSION_COUNT, EXTENSION_NAME, EACH_EXTENSION_TYPE = 75, 76, 77
DIAGNOSTICS, ENTRIES = 78, 78 + 26


class Performance(ctypes.Structure):
    _fields_ = (("exec_time", c_float), ("power_usage", c_float))


class OperandPerformance(ctypes.Structure):
    _fields_ = (("operand_type", c_int32), ("info", Performance))


class ExtensionType(ctypes.Structure):
    _fields_ = (("code", c_uint16), ("is_tensor", c_bool), ("byte_size", c_uint32))


class Driver:
    """The table, called by position."""

    def __init__(self, phone: Library) -> None:
        get = phone.dll.ANeuralNetworks_getSLDriverImpl
        get.restype = c_void_p
        self.address = get()
        assert self.address is not None
        self.level = c_int64.from_address(self.address).value
        self.entries = list((c_void_p * ENTRIES).from_address(self.address + 8))

    def call(self, entry: int, *args: object) -> int:
        address = self.entries[entry]
        assert address is not None
        return int(ctypes.CFUNCTYPE(c_int)(address)(*args))

    def device(self) -> c_void_p:
        found = c_void_p()
        assert self.call(GET_DEVICE, c_uint32(0), byref(found)) == NO_ERROR
        return found


@pytest.fixture
def driver(load_phone: LoadPhone) -> Driver:
    return Driver(load_phone(PHONE))


def test_the_table_has_the_level_and_the_order_of_the_abi(load_phone: LoadPhone) -> None:
    phone = load_phone(PHONE)
    driver = Driver(phone)
    assert driver.level == 1000006
    where = {
        BURST_CREATE: "Burst_create",
        DEVICE_GET_NAME: "Device_getName",
        EXECUTION_COMPUTE: "Execution_compute",
        MODEL_CREATE: "Model_create",
        MODEL_FREE: "Model_free",
        GET_DEVICE: "_getDevice",
        GET_DEVICE_COUNT: "_getDeviceCount",
        GET_RUNTIME_LEVEL: "_getRuntimeFeatureLevel",
    }
    exported = {
        entry: ctypes.cast(phone.dll[f"ANeuralNetworks{name}"], c_void_p).value
        for entry, name in where.items()
    }
    assert {entry: driver.entries[entry] for entry in where} == exported
    assert all(driver.entries[:DIAGNOSTICS])
    assert not any(driver.entries[DIAGNOSTICS:])


def test_a_phone_before_level_5_has_none(load_phone: LoadPhone) -> None:
    get = load_phone("feature_level 4").dll.ANeuralNetworks_getSLDriverImpl
    get.restype = c_void_p
    assert get() is None


def test_devices_and_models_by_the_table(driver: Driver) -> None:
    count, name, model = c_uint32(), c_char_p(), c_void_p()
    assert driver.call(GET_DEVICE_COUNT, byref(count)) == NO_ERROR
    assert count.value == 2
    assert driver.call(DEVICE_GET_NAME, driver.device(), byref(name)) == NO_ERROR
    assert name.value == b"dsp"
    assert driver.call(MODEL_CREATE, byref(model)) == NO_ERROR
    driver.call(MODEL_FREE, model)


def test_no_cache_files_are_asked_for_and_none_are_taken(driver: Driver) -> None:
    models, data = c_uint32(7), c_uint32(7)
    assert driver.call(CACHE_FILES_NEEDED, driver.device(), byref(models), byref(data)) == NO_ERROR
    assert (models.value, data.value) == (0, 0)
    some = c_void_p(driver.address)  # never read: the counts come first
    args = (None, c_uint32(0), None, c_uint32(0), bytes(32))
    assert driver.call(SET_CACHING_FROM_FDS, None, *args) == UNEXPECTED_NULL
    assert driver.call(SET_CACHING_FROM_FDS, some, *args) == NO_ERROR
    one = (byref(c_int(0)), c_uint32(1), None, c_uint32(0), bytes(32))
    assert driver.call(SET_CACHING_FROM_FDS, some, *one) == BAD_DATA


def test_performance_is_that_of_the_cpu(driver: Driver) -> None:
    info = Performance()
    assert driver.call(PERFORMANCE, driver.device(), c_int32(0), byref(info)) == NO_ERROR
    assert (info.exec_time, info.power_usage) == (1.0, 1.0)
    seen = []
    callback = ctypes.CFUNCTYPE(None, OperandPerformance, c_void_p)(
        lambda each, _: seen.append((each.operand_type, each.info.exec_time))
    )
    assert driver.call(EACH_PERFORMANCE, driver.device(), None, callback) == NO_ERROR
    assert seen == [(operand_type, 1.0) for operand_type in range(16)]


def test_extensions_and_their_types(driver: Driver) -> None:
    count, name = c_uint32(), c_char_p()
    assert driver.call(EXTENSION_COUNT, driver.device(), byref(count)) == NO_ERROR
    assert count.value == 1
    assert driver.call(EXTENSION_NAME, driver.device(), c_uint32(0), byref(name)) == NO_ERROR
    assert name.value == b"com.example.fibonacci"
    assert driver.call(EXTENSION_NAME, driver.device(), c_uint32(1), byref(name)) == BAD_DATA
    seen = []
    callback = ctypes.CFUNCTYPE(None, ExtensionType, c_void_p)(
        lambda each, _: seen.append((each.code, each.is_tensor, each.byte_size))
    )
    arguments = (driver.device(), c_uint32(0), None, callback)
    assert driver.call(EACH_EXTENSION_TYPE, *arguments) == NO_ERROR
    assert seen == [(0, False, 8), (1, True, 8)]
