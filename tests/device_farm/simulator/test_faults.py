"""Limits, faults, timeouts, caching, fences and device memory, each through the C interface."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import byref, c_bool, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import pytest

from device_farm.virtual_phone.profile import PROFILES_DIR, find_profile
from tests.device_farm.simulator.conftest import LoadPhone
from tests.device_farm.simulator.nnapi import (
    BAD_DATA,
    BAD_STATE,
    NO_ERROR,
    RELU,
    TENSOR_FLOAT16,
    TENSOR_FLOAT32,
    Compilation,
    Execution,
    Library,
    Model,
)

OUT_OF_MEMORY, OP_FAILED, MISSED_DEADLINE = 1, 5, 10
PHONE = "feature_level 8\ndevice npu accelerator 1 8\n"
X = np.array([-1, 2, 3], np.float32)
RECTIFIED = [0, 2, 3]


def relu(phone: Library, type_: int = TENSOR_FLOAT32, dims: tuple[int, ...] = (3,)) -> Model:
    model = Model(phone)
    x, y = model.input(type_, dims), model.operand(type_, dims)
    model.operation(RELU, [x], [y])
    return model.finish([y])


@contextmanager
def compiled(phone: Library) -> Iterator[Compilation]:
    with (
        relu(phone) as model,
        Compilation(model, [next(iter(phone.devices().values()))]) as compilation,
    ):
        yield compilation.finish()


def ready(compilation: Compilation) -> Execution:
    execution = compilation.execution()
    execution.set_all([X], [(3,)])
    return execution


def run_code(compilation: Compilation) -> int:
    with ready(compilation) as execution:
        return execution.library.code("Execution_compute", execution.handle)


@pytest.mark.parametrize(
    ("limit", "type_", "dims", "supported"),
    [
        ("deny_type npu TENSOR_FLOAT16", TENSOR_FLOAT16, (3,), False),
        ("deny_type npu TENSOR_FLOAT16", TENSOR_FLOAT32, (3,), True),
        ("max_rank npu 2", TENSOR_FLOAT32, (1, 1, 3), False),
        ("max_rank npu 2", TENSOR_FLOAT32, (1, 3), True),
        ("deny npu RELU", TENSOR_FLOAT32, (3,), False),
    ],
)
def test_limits_of_a_device(
    load_phone: LoadPhone, limit: str, type_: int, dims: tuple[int, ...], supported: bool
) -> None:
    phone = load_phone(f"{PHONE}{limit}\n")
    with relu(phone, type_, dims) as model:
        answer = c_bool()
        devices = (c_void_p * 1)(phone.devices()["npu"])
        phone.call(
            "Model_getSupportedOperationsForDevices", model.handle, devices, 1, byref(answer)
        )
        assert answer.value is supported
        with Compilation(model, list(devices)) as compilation:
            code = phone.code("Compilation_finish", compilation.handle)
        assert code == (NO_ERROR if supported else BAD_DATA)


def test_an_operation_that_compiles_and_fails_when_it_runs(load_phone: LoadPhone) -> None:
    with compiled(load_phone(f"{PHONE}quirk npu fail RELU\n")) as compilation:
        assert run_code(compilation) == OP_FAILED


def test_an_operation_that_answers_zeros(load_phone: LoadPhone) -> None:
    with (
        compiled(load_phone(f"{PHONE}quirk npu wrong RELU\n")) as compilation,
        ready(compilation) as execution,
    ):
        execution.compute()
        assert execution.outputs[0].tolist() == [0, 0, 0]


def test_out_of_memory_from_the_second_run_on(load_phone: LoadPhone) -> None:
    with compiled(load_phone(f"{PHONE}quirk npu out_of_memory_at_run 2\n")) as compilation:
        codes = [run_code(compilation) for _ in range(3)]
    assert codes == [NO_ERROR, OUT_OF_MEMORY, OUT_OF_MEMORY]


def test_a_hanging_run_ends_at_its_timeout(load_phone: LoadPhone) -> None:
    phone = load_phone(f"{PHONE}quirk npu hang_at_run 1\n")
    with compiled(phone) as compilation:
        with ready(compilation) as execution:
            phone.call("Execution_setTimeout", execution.handle, c_uint64(20_000_000))
            assert phone.code("Execution_compute", execution.handle) == MISSED_DEADLINE
        assert run_code(compilation) == NO_ERROR


def test_a_modelled_latency_above_the_timeout_misses_it(load_phone: LoadPhone) -> None:
    phone = load_phone(f"{PHONE}latency per_execution_us 10000000\n")
    with compiled(phone) as compilation, ready(compilation) as execution:
        phone.call("Execution_setTimeout", execution.handle, c_uint64(10_000_000))
        assert phone.code("Execution_compute", execution.handle) == MISSED_DEADLINE


def test_the_process_ends_at_the_nth_run(simulator: Path, tmp_path: Path) -> None:
    (tmp_path / "profile").write_text(f"{PHONE}quirk npu crash_at_run 2\n")
    program = (
        "from pathlib import Path\n"
        "from tests.device_farm.simulator.nnapi import Library\n"
        "from tests.device_farm.simulator.test_faults import compiled, run_code\n"
        f"with compiled(Library(Path({str(simulator)!r}))) as compilation:\n"
        "    print(run_code(compilation), flush=True)\n"
        "    run_code(compilation)\n"
    )
    environment = {**os.environ, "NNFARM_SIM_PROFILE": str(tmp_path / "profile")}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (-6, "0\n")
    assert "npu crashes as its profile says" in result.stderr


def _run_s(compilation: Compilation) -> float:
    start = time.monotonic()
    assert run_code(compilation) == NO_ERROR
    return time.monotonic() - start


def test_the_first_run_is_slower(load_phone: LoadPhone) -> None:
    with compiled(load_phone(f"{PHONE}quirk npu first_run_us 200000\n")) as compilation:
        first, second = _run_s(compilation), _run_s(compilation)
    assert first >= 0.2 > second


def test_a_hot_phone_is_slower(load_phone: LoadPhone) -> None:
    phone = load_phone(
        f"{PHONE}latency per_execution_us 30000\n"
        "thermal throttle_after_us 20000\nthermal slowdown 5\n"
    )
    with compiled(phone) as compilation:
        cold, hot = _run_s(compilation), _run_s(compilation)
    assert 0.03 <= cold < 0.15 <= hot


@pytest.mark.parametrize("ignored", [False, True])
def test_a_cached_compilation_takes_no_time(
    load_phone: LoadPhone, tmp_path: Path, ignored: bool
) -> None:
    phone = load_phone(
        f"{PHONE}latency compile_per_operation_us 200000\n"
        + ("quirk npu ignore_cache 1\n" if ignored else "")
    )
    taken = []
    for _ in range(2):
        with relu(phone) as model, Compilation(model, [phone.devices()["npu"]]) as compilation:
            folder = str(tmp_path).encode()
            phone.call("Compilation_setCaching", compilation.handle, folder, bytes(range(32)))
            start = time.monotonic()
            compilation.finish()
            taken.append(time.monotonic() - start)
    assert taken[0] >= 0.2
    assert (taken[1] >= 0.2) is ignored


def test_a_compilation_above_its_timeout_misses_it(load_phone: LoadPhone, tmp_path: Path) -> None:
    phone = load_phone(f"{PHONE}latency compile_per_operation_us 10000000\n")
    with relu(phone) as model, Compilation(model, [phone.devices()["npu"]]) as compilation:
        folder = str(tmp_path / "cache").encode()
        (tmp_path / "cache").mkdir()
        phone.call("Compilation_setCaching", compilation.handle, folder, bytes(32))
        phone.call("Compilation_setTimeout", compilation.handle, c_uint64(10_000_000))
        assert phone.code("Compilation_finish", compilation.handle) == MISSED_DEADLINE
        assert not list((tmp_path / "cache").iterdir())


def test_two_executions_cannot_compute_in_one_burst(load_phone: LoadPhone) -> None:
    phone = load_phone(f"{PHONE}latency per_execution_us 500000\n")
    burst = c_void_p()
    with compiled(phone) as compilation:
        phone.call("Burst_create", compilation.handle, byref(burst))
        together = threading.Barrier(2)

        def compute(_: int) -> int:
            with ready(compilation) as execution:
                together.wait()
                return phone.code("Execution_burstCompute", execution.handle, burst)

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(compute, range(2))) == [NO_ERROR, BAD_STATE]
        with ready(compilation) as execution:
            phone.call("Execution_burstCompute", execution.handle, burst)
            assert execution.outputs[0].tolist() == RECTIFIED
        phone.free("Burst", burst)


@pytest.mark.parametrize(("statement", "rounded"), [("", False), ("relaxed_float16 npu\n", True)])
@pytest.mark.parametrize("relaxed", [False, True])
def test_a_relaxed_model_is_rounded_where_the_device_does(
    load_phone: LoadPhone, statement: str, rounded: bool, relaxed: bool
) -> None:
    phone = load_phone(f"{PHONE}{statement}")
    value = np.array([1 / 3, 70000, -1], np.float32)
    with Model(phone) as model:
        phone.call("Model_relaxComputationFloat32toFloat16", model.handle, c_bool(relaxed))
        x, y = model.input(TENSOR_FLOAT32, (3,)), model.operand(TENSOR_FLOAT32, (3,))
        model.operation(RELU, [x], [y])
        model.finish([y])
        with (
            Compilation(model, [phone.devices()["npu"]]) as compilation,
            compilation.finish().execution() as execution,
        ):
            execution.set_all([value], [(3,)])
            execution.compute()
            result = execution.outputs[0].tolist()
    third = np.float32(1 / 3) if not (relaxed and rounded) else np.float16(1 / 3)
    large = float("inf") if relaxed and rounded else 70000
    assert result == [float(third), large, 0]


def test_a_cache_directory_must_exist(library: Library) -> None:
    with relu(library) as model, Compilation(model) as compilation:
        code = library.code("Compilation_setCaching", compilation.handle, b"/gone", bytes(32))
        assert code == BAD_DATA


def test_a_run_waits_for_a_fence_and_makes_one(library: Library) -> None:
    reader, writer = os.pipe()
    start, done, fd = c_void_p(), c_void_p(), c_int()
    with compiled(library) as compilation, ready(compilation) as execution:
        library.call("Event_createFromSyncFenceFd", reader, byref(start))
        library.call(
            "Execution_startComputeWithDependencies",
            execution.handle,
            (c_void_p * 1)(start),
            1,
            c_uint64(0),
            byref(done),
        )
        library.call("Event_getSyncFenceFd", done, byref(fd))
        assert library.code("Execution_compute", execution.handle) == BAD_STATE
        os.write(writer, b"go")
        assert int.from_bytes(os.read(fd.value, 8), sys.byteorder) == 1
        assert execution.outputs[0].tolist() == RECTIFIED
        for event in (start, done):
            library.free("Event", event)
    for descriptor in (reader, writer, fd.value):
        os.close(descriptor)


def test_fences_are_refused_where_there_are_none(library: Library) -> None:
    event, fd = c_void_p(), c_int()
    assert library.code("Event_createFromSyncFenceFd", -1, byref(event)) == BAD_DATA
    with compiled(library) as compilation, ready(compilation) as execution:
        library.call("Execution_startCompute", execution.handle, byref(event))
        assert library.code("Event_getSyncFenceFd", event, byref(fd)) == BAD_DATA
        assert fd.value == -1
        library.free("Event", event)


def _memory(library: Library, compilation: Compilation) -> c_void_p:
    desc, memory = c_void_p(), c_void_p()
    library.dll.ANeuralNetworksMemoryDesc_free.restype = None
    library.call("MemoryDesc_create", byref(desc))
    assert library.code("Memory_createFromDesc", desc, byref(memory)) == BAD_STATE
    assert library.code("MemoryDesc_finish", desc) == BAD_DATA  # no role yet
    for kind in ("Input", "Output"):
        add = f"MemoryDesc_add{kind}Role"
        library.call(add, desc, compilation.handle, 0, c_float(1))
        assert library.code(add, desc, compilation.handle, 0, c_float(1)) == BAD_DATA
    assert library.code("MemoryDesc_setDimensions", desc, 1, byref(c_uint32(4))) == BAD_DATA
    library.call("MemoryDesc_finish", desc)
    library.call("Memory_createFromDesc", desc, byref(memory))
    library.free("MemoryDesc", desc)
    return memory


def test_a_result_stays_in_device_memory(library: Library) -> None:
    with compiled(library) as compilation:
        memory = _memory(library, compilation)
        whole = (None, memory, c_size_t(0), c_size_t(0))
        with compilation.execution() as first:
            first.set_input(0, X)
            library.call("Execution_setOutputFromMemory", first.handle, 0, *whole)
            first.compute()
        with compilation.execution() as second:
            library.call("Execution_setInputFromMemory", second.handle, 0, *whole)
            output = second.set_output(0, (3,))
            second.compute()
            assert output.tolist() == RECTIFIED
        library.free("Memory", memory)


def test_device_memory_without_a_value_is_no_input(library: Library) -> None:
    with compiled(library) as compilation, compilation.execution() as execution:
        memory = _memory(library, compilation)
        arguments = (execution.handle, 0, None, memory)
        part = library.code("Execution_setInputFromMemory", *arguments, c_size_t(4), c_size_t(4))
        assert part == BAD_DATA
        library.call("Execution_setInputFromMemory", *arguments, c_size_t(0), c_size_t(0))
        execution.set_output(0, (3,))
        assert library.code("Execution_compute", execution.handle) == OP_FAILED
        library.free("Memory", memory)


@pytest.mark.parametrize("path", sorted(PROFILES_DIR.glob("*.toml")), ids=lambda path: path.stem)
def test_the_library_reads_every_shipped_profile(load_phone: LoadPhone, path: Path) -> None:
    profile = find_profile(path.stem)
    if profile.feature_level < 3:  # no device functions to ask
        return
    names = [*(device.name for device in profile.device), "nnapi-reference"]
    assert list(load_phone(profile.render()).devices()) == names
