"""What each feature level refuses, and the phone a profile describes."""

from __future__ import annotations

import time
from ctypes import byref, c_bool, c_int64, c_uint32, c_void_p

import numpy as np
import pytest

from tests.device_farm.simulator import nnapi
from tests.device_farm.simulator.conftest import LoadPhone
from tests.device_farm.simulator.nnapi import (
    BAD_DATA,
    BAD_STATE,
    Compilation,
    Library,
    Model,
    NnapiError,
)

NPU = "device npu accelerator 1.2 4\n"


def relu(phone: Library, type_: int = nnapi.TENSOR_FLOAT32) -> Model:
    scale = 0.5 if type_ in (nnapi.TENSOR_QUANT8, nnapi.TENSOR_QUANT8_SIGNED) else 0.0
    model = Model(phone)
    x = model.input(type_, (2, 2), scale)
    out = model.operand(type_, (2, 2), scale)
    model.operation(nnapi.RELU, [x], [out])
    return model.finish([out])


@pytest.mark.parametrize(
    ("level", "public"),
    [(1, 27), (2, 28), (3, 29), (4, 30), (5, 31), (6, 1000006), (7, 1000007), (8, 1000008)],
)
def test_runtime_feature_level_has_its_public_number(
    load_phone: LoadPhone, level: int, public: int
) -> None:
    assert load_phone(f"feature_level {level}").feature_level == public


@pytest.mark.parametrize(
    ("type_", "introduced"),
    [
        (nnapi.TENSOR_FLOAT32, 1),
        (nnapi.TENSOR_QUANT8, 1),
        (nnapi.TENSOR_FLOAT16, 3),
        (nnapi.TENSOR_QUANT8_SIGNED, 4),
    ],
)
def test_operand_types_have_their_level(load_phone: LoadPhone, type_: int, introduced: int) -> None:
    relu(load_phone(f"feature_level {introduced}"), type_)
    if introduced > 1:
        older = load_phone(f"feature_level {introduced - 1}")
        with pytest.raises(NnapiError) as error:
            relu(older, type_)
        assert error.value.code == BAD_DATA


def add_int32(model: Model) -> None:
    x = model.input(nnapi.TENSOR_INT32, (2,))
    out = model.operand(nnapi.TENSOR_INT32, (2,))
    model.operation(nnapi.ADD, [x, x, model.scalar(0)], [out])


def subtract(model: Model) -> None:
    x = model.input(nnapi.TENSOR_FLOAT32, (2,))
    out = model.operand(nnapi.TENSOR_FLOAT32, (2,))
    model.operation(nnapi.SUB, [x, x, model.scalar(0)], [out])


def hard_swish(model: Model) -> None:
    x = model.input(nnapi.TENSOR_FLOAT32, (2,))
    out = model.operand(nnapi.TENSOR_FLOAT32, (2,))
    model.operation(nnapi.HARD_SWISH, [x], [out])


def batch_matmul(model: Model) -> None:
    x = model.input(nnapi.TENSOR_FLOAT32, (1, 2, 2))
    out = model.operand(nnapi.TENSOR_FLOAT32, (1, 2, 2))
    no = model.scalar(False)
    model.operation(nnapi.BATCH_MATMUL, [x, x, no, no], [out])


def reverse(model: Model) -> None:
    x = model.input(nnapi.TENSOR_FLOAT32, (2,))
    out = model.operand(nnapi.TENSOR_FLOAT32, (2,))
    model.operation(nnapi.REVERSE, [x, model.constant(np.zeros(1, np.int32))], [out])


@pytest.mark.parametrize(
    ("build", "introduced"),
    [(subtract, 2), (add_int32, 4), (hard_swish, 4), (batch_matmul, 6), (reverse, 7)],
)
def test_operations_have_their_level(load_phone: LoadPhone, build: object, introduced: int) -> None:
    assert callable(build)
    build(Model(load_phone(f"feature_level {introduced}")))
    with pytest.raises(NnapiError) as error:
        build(Model(load_phone(f"feature_level {introduced - 1}")))
    assert error.value.code == BAD_DATA


def test_softmax_of_rank_3_needs_level_3(load_phone: LoadPhone) -> None:
    def finish(phone: Library) -> None:
        model = Model(phone)
        x = model.input(nnapi.TENSOR_FLOAT32, (1, 2, 3))
        out = model.operand(nnapi.TENSOR_FLOAT32, (1, 2, 3))
        model.operation(nnapi.SOFTMAX, [x, model.scalar(1.0)], [out])
        model.finish([out])

    finish(load_phone("feature_level 3"))
    with pytest.raises(NnapiError) as error:
        finish(load_phone("feature_level 2"))
    assert (error.value.function, error.value.code) == ("Model_finish", BAD_DATA)


def test_functions_of_a_later_level_answer_bad_state(load_phone: LoadPhone) -> None:
    phone = load_phone("feature_level 2")
    count = c_uint32()
    assert phone.code("_getDeviceCount", byref(count)) == BAD_STATE
    assert phone.code("Execution_compute", None) == BAD_STATE
    assert phone.code("Execution_setReusable", None, True) == BAD_STATE


def test_devices_of_a_profile(load_phone: LoadPhone) -> None:
    phone = load_phone("feature_level 5\n# the accelerator\n" + NPU)
    devices = phone.devices()
    assert list(devices) == ["npu", "nnapi-reference"]
    type_, level, version = nnapi.c_int32(), c_int64(), nnapi.ctypes.c_char_p()
    phone.call("Device_getType", devices["npu"], byref(type_))
    phone.call("Device_getFeatureLevel", devices["npu"], byref(level))
    phone.call("Device_getVersion", devices["npu"], byref(version))
    assert (type_.value, level.value, version.value) == (4, 30, b"1.2")


def test_a_denied_operation_runs_elsewhere_or_not_at_all(load_phone: LoadPhone) -> None:
    phone = load_phone("feature_level 4\n" + NPU + "deny npu RELU\n")
    npu = phone.devices()["npu"]
    with relu(phone) as model:
        supported = (c_bool * 1)(True)
        phone.call(
            "Model_getSupportedOperationsForDevices",
            *(model.handle, (c_void_p * 1)(npu), 1, supported),
        )
        assert list(supported) == [False]
        with Compilation(model, [npu]) as only, pytest.raises(NnapiError) as error:
            only.finish()
        assert error.value.code == BAD_DATA
        with Compilation(model) as anywhere, anywhere.finish().execution() as execution:
            execution.set_all([np.array([[-1, 2], [3, -4]], np.float32)], [(2, 2)])
            execution.compute()
            np.testing.assert_array_equal(execution.outputs[0], [[0, 2], [3, 0]])


def elapsed_us(phone: Library, device: str) -> float:
    chosen = [phone.devices()[device]]
    with (
        relu(phone) as model,
        Compilation(model, chosen) as compilation,
        compilation.finish().execution() as execution,
    ):
        execution.set_all([np.ones((2, 2), np.float32)], [(2, 2)])
        start = time.monotonic()
        execution.compute()
        return (time.monotonic() - start) * 1e6


def test_latency_is_modelled_on_the_accelerator_only(load_phone: LoadPhone) -> None:
    phone = load_phone(
        "feature_level 4\n" + NPU + "latency per_execution_us 40000\n"
        "latency per_operation_us 10000\nlatency bytes_per_us 0.001\n"
    )
    # 40 ms + 1 operation of 10 ms + 16 bytes at 1 byte a ms.
    assert 66_000 <= elapsed_us(phone, "npu") < 1_000_000
    assert elapsed_us(phone, "nnapi-reference") < 40_000


@pytest.mark.parametrize(
    "profile",
    [
        "feature_level 9",
        "speed 3",
        "device npu quantum 1.0 4",
        "deny nobody ADD",
        "latency macs_per_us fast",
        NPU + NPU,
    ],
)
def test_a_bad_profile_is_reported_and_has_no_devices(
    load_phone: LoadPhone, capfd: pytest.CaptureFixture[str], profile: str
) -> None:
    phone = load_phone(profile)
    assert "is not understood" in capfd.readouterr().err
    assert phone.feature_level == 27
    assert phone.code("_getDeviceCount", byref(c_uint32())) == BAD_STATE


def test_extensions_are_refused(library: Library) -> None:
    device = library.devices()["nnapi-reference"]
    supported = c_bool(True)
    library.call("Device_getExtensionSupport", device, b"com.example.dsp", byref(supported))
    assert not supported.value
    with Model(library) as model:
        code = nnapi.c_int32()
        args = (model.handle, b"com.example.dsp", nnapi.ctypes.c_uint16(1), byref(code))
        assert library.code("Model_getExtensionOperandType", *args) == BAD_DATA
        assert library.code("Model_getExtensionOperationType", *args) == BAD_DATA


def test_fused_activation_must_exist(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_FLOAT32, (2,))
        out = model.operand(nnapi.TENSOR_FLOAT32, (2,))
        model.operation(nnapi.ADD, [x, x, model.scalar(7)], [out])
        with pytest.raises(NnapiError) as error:
            model.finish([out])
    assert error.value.code == BAD_DATA


def test_scale_of_a_product_must_be_large_enough(library: Library) -> None:
    with Model(library) as model:
        x = model.input(nnapi.TENSOR_QUANT8, (2,), 0.5, 0)
        out = model.operand(nnapi.TENSOR_QUANT8, (2,), 0.25, 0)
        model.operation(nnapi.MUL, [x, x, model.scalar(0)], [out])
        with pytest.raises(NnapiError) as error:
            model.finish([out])
    assert error.value.code == BAD_DATA
