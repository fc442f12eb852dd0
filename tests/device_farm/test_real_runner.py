"""The whole device side together: agent's strategies, adb, virtual phone, runner, simulator."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from safetensors.numpy import save
from tvm import relax

from device_farm.drivers.adb import AdbDevice
from device_farm.resources.bundles import find_bundle
from device_farm.runtime import build as runtime_build
from device_farm.simulator import build as simulator_build
from device_farm.strategies.describe import describe
from device_farm.strategies.measurement import measurement_of
from device_farm.strategies.run_package import PackageRun, run_package
from device_farm.virtual_phone.profile import PROFILES_DIR
from service.contracts.artifacts import Manifest, Part, PartRole
from service.contracts.errors import NnfarmError
from service.contracts.jobs import EvaluationSet
from service.contracts.runs import MeasureOptions, RunMeasurement
from service.contracts.targets import Abi
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from tests.device_farm.conftest import NO_NNAPI, REPOSITORY, MakePhone
from tests.device_farm.stand_in import Package, sha256

SHAPE = (2, 3)
BIAS = np.arange(6, dtype=np.float32).reshape(SHAPE)
INPUTS = np.linspace(-1, 1, 5 * 6, dtype=np.float32).reshape(5, *SHAPE)
SYMBOL = "nnfarm_nnapi_0"
RUNTIME_DIR = REPOSITORY / "build" / "runtime"
SIMULATOR_DIR = REPOSITORY / "build" / "simulator"


@pytest.fixture(scope="session")
def ensure_built() -> Callable[[str], None]:
    """Builds a target's runner and simulator where they are missing; that takes minutes once."""

    def ensure(target: str) -> None:
        if not (RUNTIME_DIR / target / "nnfarm_runner").exists():
            runtime_build.build(target)
        if not (SIMULATOR_DIR / target / "libneuralnetworks.so").exists():
            simulator_build.build_simulator(target)

    return ensure


def encoded_bias_add() -> bytes:
    """x + BIAS as an encoded NNAPI model; see docs/reference/encoded-model.md."""
    tensor = {"type": 3, "dims": list(SHAPE)}
    bias = base64.b64encode(BIAS.tobytes()).decode()
    return json.dumps(
        {
            "format": "nnfarm.nnapi",
            "version": 1,
            "symbol": SYMBOL,
            "level": 1,
            "relaxed": False,
            "operands": [
                tensor,
                {**tensor, "data": bias},
                {"type": 1, "dims": [], "data": "AAAAAA=="},
                tensor,
            ],
            "operations": [{"code": 0, "name": "ADD", "inputs": [0, 1, 2], "outputs": [3]}],
            "inputs": [0],
            "outputs": [3],
        }
    ).encode()


@pytest.fixture(scope="module")
def libraries(
    tmp_path_factory: pytest.TempPathFactory, ensure_built: Callable[[str], None]
) -> dict[str, bytes]:
    """model.so, that calls the subgraph, and model_cpu.so, that needs no NNAPI."""
    ensure_built("linux-x86_64")
    player = RUNTIME_DIR / "linux-x86_64" / "libnnfarm_nnapi.so"
    ctypes.CDLL(str(player), mode=ctypes.RTLD_GLOBAL)
    subgraph = tvm_ffi.get_global_func("nnfarm.nnapi.module_create")(encoded_bias_add())

    def offloaded(x: relax.Var) -> relax.Expr:
        return relax.call_dps_packed(SYMBOL, relax.Tuple([x]), relax.TensorType(SHAPE, "float32"))

    def on_cpu(x: relax.Var) -> relax.Expr:
        return relax.op.add(x, relax.const(BIAS))

    folder = tmp_path_factory.mktemp("libraries")
    model = module_of(offloaded).with_attr("external_mods", [subgraph])
    return {
        "model.so": compiled(model, folder / "model.so"),
        "model_cpu.so": compiled(module_of(on_cpu), folder / "model_cpu.so"),
    }


def module_of(body: Callable[[relax.Var], relax.Expr]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(body(x)))
    return builder.get()


def compiled(module: tvm.IRModule, path: Path) -> bytes:
    relax.build(module, tvm.target.Target({"kind": "llvm"})).export_library(str(path))
    return path.read_bytes()


def make_package(libraries: dict[str, bytes]) -> Package:
    tensor: dict[str, Any] = {"dtype": DType.FLOAT32, "shape": SHAPE}
    roles = {"model.so": PartRole.LIBRARY, "model_cpu.so": PartRole.CPU_TWIN}
    inputs, expected = save({"x": INPUTS}), save({"y": INPUTS + BIAS})
    manifest = Manifest(
        model_sha256=hashlib.sha256(b"").hexdigest(),
        model_name="bias add",
        feature_level=1,
        needed_level=1,
        abi=Abi.X86_64,
        signature=ModelSignature(
            inputs=(TensorSpec(name="x", **tensor),), outputs=(TensorSpec(name="y", **tensor),)
        ),
        subgraph_count=1,
        offloaded_count=1,
        operation_count=1,
        parts=tuple(
            Part(role=roles[name], path=name, sha256=sha256(data), size_bytes=len(data))
            for name, data in libraries.items()
        ),
        versions={},
        options={},
    )
    blobs = {sha256(data): data for data in (*libraries.values(), inputs, expected)}
    return Package(manifest, blobs, sha256(inputs), sha256(expected))


def measured(phone: AdbDevice, package: Package, folder: Path) -> RunMeasurement:
    job_folder = folder / "job"
    job_folder.mkdir()
    parts = package.manifest.parts
    job = PackageRun(
        run_id="run_1-1",
        manifest=package.manifest,
        parts={part.path: package.stored(part.sha256, folder) for part in parts},
        inputs=package.stored(package.inputs_sha256, folder),
        bundle=find_bundle(RUNTIME_DIR, Abi.X86_64, virtual=True),
        measure=MeasureOptions(min_iterations=5, min_duration_ms=10),
        folder=job_folder,
    )
    result = run_package(phone, job, lambda: False)
    evaluation = EvaluationSet(
        sample_count=len(INPUTS),
        inputs_sha256=package.inputs_sha256,
        expected_sha256=package.expected_sha256,
        synthetic=True,
    )
    expected = package.stored(package.expected_sha256, folder).local
    return measurement_of(result, package.manifest, evaluation, expected, simulated=True)


@pytest.mark.parametrize(
    ("profile", "accelerators"),
    [
        ("virtual-level1-x86_64", ()),  # level 1 has no way to ask
        ("virtual-level4-x86_64", ("sim-npu/1.0/4",)),
        ("virtual-level7-x86_64", ("sim-npu/2.1/7",)),
    ],
)
def test_a_package_runs_on_the_simulated_accelerator(
    make_phone: MakePhone,
    libraries: dict[str, bytes],
    tmp_path: Path,
    profile: str,
    accelerators: tuple[str, ...],
) -> None:
    measurement = measured(make_phone(profile), make_package(libraries), tmp_path)
    assert measurement.fallbacks == ()
    assert measurement.engine == "nnapi"
    assert set(accelerators) <= set(measurement.accelerators)
    assert measurement.accuracy.sample_count == len(INPUTS)
    assert measurement.accuracy.max_abs_error == 0.0
    assert measurement.latency.count >= 5
    assert len(measurement.samples_us) == measurement.latency.count
    assert measurement.compile_us > 0
    assert measurement.compile_cold_us is not None
    assert measurement.compile_cold_us > 0
    has_cache = profile != "virtual-level1-x86_64"
    assert (measurement.compile_cached_us is not None) == has_cache


def test_the_modelled_latency_is_in_the_measured_one(
    make_phone: MakePhone, libraries: dict[str, bytes], tmp_path: Path
) -> None:
    # Level 1's profile sleeps 900 us an execution.
    measurement = measured(make_phone("virtual-level1-x86_64"), make_package(libraries), tmp_path)
    assert measurement.latency.min_us >= 900


def test_a_phone_without_nnapi_runs_the_twin(
    make_phone: MakePhone, libraries: dict[str, bytes], tmp_path: Path
) -> None:
    measurement = measured(make_phone(NO_NNAPI), make_package(libraries), tmp_path)
    assert measurement.engine == "cpu"
    assert [fallback.code for fallback in measurement.fallbacks] == ["nnapi.missing"]
    assert measurement.accelerators == ()
    assert measurement.accuracy.max_abs_error == 0.0


def test_a_driver_that_crashed_is_not_tried_again_on_that_phone(
    make_phone: MakePhone, libraries: dict[str, bytes], tmp_path: Path
) -> None:
    text = (PROFILES_DIR / "virtual-level3-x86_64.toml").read_text()
    profile = tmp_path / "crashing.toml"
    profile.write_text(text.replace("[latency]", "[device.quirks]\ncrash_at_run = 1\n\n[latency]"))
    phone, package = make_phone(str(profile)), make_package(libraries)
    details = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        measurement = measured(phone, package, tmp_path / name)
        assert measurement.engine == "cpu"
        assert measurement.accuracy.max_abs_error == 0.0
        (fallback,) = measurement.fallbacks
        assert fallback.code == "nnapi.driver_crashed"
        details.append(fallback.detail)
    assert not details[0].startswith("on record")
    assert details[1].startswith("on record, not tried again: ")


def test_a_damaged_package_is_a_bad_package(
    make_phone: MakePhone, libraries: dict[str, bytes], tmp_path: Path
) -> None:
    damaged = dict.fromkeys(libraries, b"no library" * 100)
    with pytest.raises(NnfarmError) as caught:
        measured(make_phone(NO_NNAPI), make_package(damaged), tmp_path)
    assert caught.value.code == "run.bad_package"


@pytest.mark.parametrize(
    ("profile", "target", "level", "accelerators"),
    [
        (NO_NNAPI, "linux-x86_64", 0, []),
        ("virtual-level1-x86_64", "linux-x86_64", 1, []),
        ("virtual-level3-x86_64", "linux-x86_64", 3, ["sim-npu"]),
        ("virtual-level7-x86_64", "linux-x86_64", 7, ["sim-npu", "sim-gpu"]),
        pytest.param(
            "virtual-level8-arm64", "linux-aarch64", 8, ["sim-npu"], marks=pytest.mark.arm64
        ),
    ],
)
def test_phones_are_described_as_their_profiles_say(
    make_phone: MakePhone,
    ensure_built: Callable[[str], None],
    profile: str,
    target: str,
    level: int,
    accelerators: list[str],
) -> None:
    ensure_built(target)
    found = describe(make_phone(profile), profile, RUNTIME_DIR)
    assert found.reason_unusable == ""
    assert (found.name, found.feature_level) == (profile, level)
    names = [accelerator.name for accelerator in found.accelerators]
    assert [name for name in names if name != "nnapi-reference"] == accelerators
    if target == "linux-aarch64":  # QEMU has all of them
        assert found.cpu_variants == ("dotprod", "fp16", "i8mm")
