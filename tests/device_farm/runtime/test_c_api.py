"""The C API, by ctypes: what an application that embeds the runtime sees."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SHAPE = (4, 8)
CONSTANTS = np.arange(32, dtype=np.float32).reshape(SHAPE) + np.float32(0.5)
OK, BAD_ARGUMENT, BAD_PACKAGE, BAD_INPUT, NNAPI_FAILED = 0, 2, 3, 4, 6

Array = np.ndarray[Any, Any]


class TensorInfo(ctypes.Structure):
    """nnfarm_tensor_info."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("rank", ctypes.c_size_t),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class Tensor(ctypes.Structure):
    """nnfarm_tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size_bytes", ctypes.c_size_t),
        ("rank", ctypes.c_size_t),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class Api:
    """The library, with the statuses of its calls."""

    def __init__(self, library: Path) -> None:
        self.c = ctypes.CDLL(str(library))
        self.c.nnfarm_last_error.restype = ctypes.c_char_p
        self.c.nnfarm_version.restype = ctypes.c_char_p
        for name in ("input_count", "output_count"):
            getattr(self.c, f"nnfarm_model_{name}").restype = ctypes.c_size_t

    def error(self) -> str:
        text: bytes = self.c.nnfarm_last_error()
        return text.decode()

    def options(self, **settings: str | Path) -> ctypes.c_void_p:
        options = ctypes.c_void_p()
        assert self.c.nnfarm_options_create(ctypes.byref(options)) == OK
        for name, value in settings.items():
            words = (name.replace("_", "-").encode(), str(value).encode())
            assert self.c.nnfarm_options_set(options, *words) == OK, self.error()
        return options

    def open(self, folder: Path, **settings: str | Path) -> tuple[int, ctypes.c_void_p]:
        options = self.options(**settings)
        model = ctypes.c_void_p()
        status = self.c.nnfarm_model_open(str(folder).encode(), options, ctypes.byref(model))
        self.c.nnfarm_options_free(options)
        return status, model

    def set_input(self, model: ctypes.c_void_p, value: Array) -> int:
        status: int = self.c.nnfarm_model_set_input(
            model, ctypes.c_size_t(0), value.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(value.nbytes), None, ctypes.c_size_t(0),
        )  # fmt: skip
        return status

    def output(self, model: ctypes.c_void_p) -> Array:
        tensor = Tensor()
        status = self.c.nnfarm_model_get_output(model, ctypes.c_size_t(0), ctypes.byref(tensor))
        assert status == OK, self.error()
        data = ctypes.string_at(tensor.data, tensor.size_bytes)
        return np.frombuffer(data, np.float32).reshape(tensor.dims[: tensor.rank])

    def compute(self, model: ctypes.c_void_p, value: Array) -> Array:
        assert self.set_input(model, value) == OK, self.error()
        assert self.c.nnfarm_model_run(model) == OK, self.error()
        return self.output(model)

    def explain(self, model: ctypes.c_void_p) -> Any:
        text = ctypes.c_char_p()
        assert self.c.nnfarm_model_explain(model, ctypes.byref(text)) == OK, self.error()
        assert text.value is not None
        return json.loads(text.value)


@pytest.fixture(scope="module")
def api(bundle: Path) -> Api:
    return Api(bundle / "libnnfarm_runtime.so")


@pytest.fixture
def opened(
    api: Api, package: Any, fault_library: Callable[..., Path]
) -> Iterator[Callable[..., ctypes.c_void_p]]:
    models: list[ctypes.c_void_p] = []

    def make(**settings: str | Path) -> ctypes.c_void_p:
        status, model = api.open(package.folder, nnapi_library=fault_library(5), **settings)
        assert status == OK, api.error()
        models.append(model)
        return model

    yield make
    for model in models:
        api.c.nnfarm_model_close(model)


def values(seed: int) -> Array:
    # Whole numbers: their sums are the same in any order.
    return np.random.default_rng(seed).integers(-99, 99, SHAPE).astype(np.float32)


def test_a_model_tells_its_signature(api: Api, opened: Any) -> None:
    model = opened()
    assert api.c.nnfarm_api_version() == 1
    assert api.c.nnfarm_version() == b"0.1.0"
    assert api.c.nnfarm_model_input_count(model) == 1
    assert api.c.nnfarm_model_output_count(model) == 1
    info = TensorInfo()
    for function, name in (("input", b"x"), ("output", b"sum")):
        call = getattr(api.c, f"nnfarm_model_{function}_info")
        assert call(model, ctypes.c_size_t(0), ctypes.byref(info)) == OK
        assert (info.name, info.type, tuple(info.dims[: info.rank])) == (name, 1, SHAPE)


def test_nnapi_computes_and_says_so(api: Api, opened: Any) -> None:
    model = opened()
    for seed in range(3):
        np.testing.assert_array_equal(api.compute(model, values(seed)), values(seed) + CONSTANTS)
    explanation = api.explain(model)
    assert explanation["engine"] == "nnapi"
    assert explanation["fallback"] is None
    assert explanation["nnapi"]["feature_level"] == 5
    (subgraph,) = explanation["subgraphs"]
    assert subgraph["symbol"] == "nnfarm_nnapi_0"
    assert subgraph["devices"] == ["fault-npu"]


def test_inputs_can_be_written_in_place(api: Api, opened: Any) -> None:
    model = opened()
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    status = api.c.nnfarm_model_map_input(
        model, ctypes.c_size_t(0), None, ctypes.c_size_t(0), ctypes.byref(data), ctypes.byref(size)
    )
    assert (status, size.value) == (OK, 128)
    ctypes.memmove(data, values(1).tobytes(), size.value)
    assert api.c.nnfarm_model_run(model) == OK, api.error()
    np.testing.assert_array_equal(api.output(model), values(1) + CONSTANTS)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("ANeuralNetworksModel_finish=4", "nnapi.model_refused"),
        ("ANeuralNetworksCompilation_finish=4", "nnapi.compile_failed"),
        ("ANeuralNetworksExecution_burstCompute=5", "nnapi.execute_failed"),
    ],
)
def test_the_twin_computes_where_nnapi_fails(
    api: Api, opened: Any, monkeypatch: pytest.MonkeyPatch, fault: str, code: str
) -> None:
    set_fault(monkeypatch, fault)
    model = opened()
    for seed in range(2):
        np.testing.assert_array_equal(api.compute(model, values(seed)), values(seed) + CONSTANTS)
    explanation = api.explain(model)
    assert (explanation["engine"], explanation["library"]) == ("cpu", "model_cpu.so")
    assert explanation["fallback"]["code"] == code
    assert explanation["fallback"]["subgraph"] == "nnfarm_nnapi_0"


def test_one_model_s_failure_is_not_another_s(
    api: Api, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = opened()
    with monkeypatch.context() as context:
        set_fault(context, "ANeuralNetworksCompilation_finish=4")
        failed = opened()
    later = opened(preference="low-power")
    assert [api.explain(model)["engine"] for model in (good, failed, later)] == [
        *("nnapi", "cpu", "nnapi")
    ]
    assert len(api.explain(later)["subgraphs"]) == 1


def test_mode_nnapi_has_no_twin(
    api: Api, package: Any, fault_library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_fault(monkeypatch, "ANeuralNetworksModel_finish=4")
    status, model = api.open(package.folder, nnapi_library=fault_library(5), mode="nnapi")
    assert (status, model.value) == (NNAPI_FAILED, None)
    assert api.error().startswith("nnapi.model_refused: ANeuralNetworksModel_finish")


def test_mode_cpu_asks_no_nnapi(api: Api, opened: Any) -> None:
    model = opened(mode="cpu")
    np.testing.assert_array_equal(api.compute(model, values(3)), values(3) + CONSTANTS)
    assert api.explain(model)["nnapi"] is None


def test_models_run_in_threads(api: Api, opened: Any) -> None:
    failures: list[int] = []

    def work(model: ctypes.c_void_p, seed: int) -> None:
        given, expected = values(seed), values(seed) + CONSTANTS
        if not all(np.array_equal(api.compute(model, given), expected) for _ in range(50)):
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(opened(), seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_bad_calls_are_refused_with_words(api: Api, opened: Any, tmp_path: Path) -> None:
    model = opened()
    assert api.c.nnfarm_model_run(model) == BAD_INPUT
    assert api.error() == "runner.bad_inputs: x is not set"
    assert api.set_input(model, np.zeros(3, np.float32)) == BAD_INPUT
    assert "12 bytes given, 128 expected" in api.error()
    shape = (ctypes.c_int64 * 2)(4, 9)
    data = values(0).ctypes.data_as(ctypes.c_void_p)
    size, rank = ctypes.c_size_t(144), ctypes.c_size_t(2)
    status = api.c.nnfarm_model_set_input(model, ctypes.c_size_t(0), data, size, shape, rank)
    assert status == BAD_INPUT
    tensor = Tensor()
    index = ctypes.c_size_t(0)
    assert api.c.nnfarm_model_get_output(model, index, ctypes.byref(tensor)) == BAD_ARGUMENT
    assert api.c.nnfarm_model_get_output(model, index, None) == BAD_ARGUMENT
    assert api.c.nnfarm_model_run(None) == BAD_ARGUMENT
    assert api.error() == "runner.usage: model is null"
    status, nothing = api.open(tmp_path / "absent")
    assert (status, nothing.value) == (BAD_PACKAGE, None)
    api.c.nnfarm_model_close(None)
    api.c.nnfarm_options_free(None)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("colour", "red", 'unknown option "colour"'),
        ("mode", "fast", "mode is auto, nnapi or cpu"),
        ("threads", "-1", "threads is a number from 0"),
    ],
)
def test_bad_options_are_refused(api: Api, name: str, value: str, words: str) -> None:
    options = api.options()
    status = api.c.nnfarm_options_set(options, name.encode(), value.encode())
    api.c.nnfarm_options_free(options)
    assert status == BAD_ARGUMENT
    assert words in api.error()


def test_values_of_nnapi_settings_are_checked_at_opening(api: Api, package: Any) -> None:
    status, _ = api.open(package.folder, preference="none")
    assert status == BAD_ARGUMENT
    assert "preference is one of" in api.error()


def set_fault(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("FAULT_FAIL", fault)
