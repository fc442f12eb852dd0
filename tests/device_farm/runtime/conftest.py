"""Real packages, made with TVM, and a runner to run them with."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from device_farm.native import toolchain
from device_farm.runtime import build

SHAPE = (4, 8)
SYMBOL = "nnfarm_nnapi_0"
FILE_CONSTANT = np.arange(32, dtype=np.float32).reshape(SHAPE)
INLINE_CONSTANT = np.full(SHAPE, 0.5, np.float32)
RUN_TIMEOUT_S = 120

Json = dict[str, Any]
Shape = tuple[int, ...]


@dataclass
class RunResult:
    """What a run of the runner left behind."""

    exit_code: int
    events: list[Json]
    log: str

    def all(self, name: str) -> list[Json]:
        return [event for event in self.events if event["event"] == name]

    def one(self, name: str) -> Json:
        (event,) = self.all(name)
        return event


@dataclass
class Package:
    """A package folder, with the arrays its model adds to its input."""

    folder: Path
    manifest: Json = field(default_factory=dict)

    def write_manifest(self) -> None:
        (self.folder / "manifest.json").write_text(json.dumps(self.manifest))


def encoded_add() -> Json:
    """x + a constant of the weights file + an inline constant, as an encoded model."""
    weights = FILE_CONSTANT.tobytes()
    tensor = {"type": 3, "dims": list(SHAPE)}
    none = {"type": 1, "dims": [], "data": base64.b64encode(bytes(4)).decode()}
    inline = base64.b64encode(INLINE_CONSTANT.tobytes()).decode()
    return {
        "format": "nnfarm.nnapi",
        "version": 1,
        "symbol": SYMBOL,
        "level": 1,
        "relaxed": False,
        "weights": {
            "file": "weights.bin",
            "size": len(weights),
            "sha256": hashlib.sha256(weights).hexdigest(),
        },
        "operands": [
            dict(tensor),
            {**tensor, "offset": 0, "size": len(weights)},
            none,
            dict(tensor),
            {**tensor, "data": inline},
            dict(tensor),
        ],
        "operations": [
            {"code": 0, "name": "ADD", "inputs": [0, 1, 2], "outputs": [3]},
            {"code": 0, "name": "ADD", "inputs": [3, 4, 2], "outputs": [5]},
        ],
        "inputs": [0],
        "outputs": [5],
    }


@pytest.fixture(scope="session")
def bundle() -> Path:
    return build.build("linux-x86_64")


@pytest.fixture(scope="session")
def player(bundle: Path) -> Callable[..., Any]:
    """The compiler's way to a module: nnfarm.nnapi.module_create."""
    ctypes.CDLL(str(bundle / "libnnfarm_nnapi.so"), mode=ctypes.RTLD_GLOBAL)
    create = tvm_ffi.get_global_func("nnfarm.nnapi.module_create")
    return lambda document: create(json.dumps(document).encode())


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles the fault-injection NNAPI library with the entry points up to a level."""
    folder = tmp_path_factory.mktemp("fault")
    source = Path(__file__).with_name("fault_nnapi.c")

    def make(symbols: int = 5, triple: str = "x86_64-linux-gnu.2.28") -> Path:
        library = folder / f"fault{symbols}-{triple}.so"
        if not library.exists():
            compiler = [toolchain.zig_path(), "cc", "-target", triple]
            flags = ["-shared", "-fPIC", "-O1", f"-DSYMBOLS={symbols}"]
            subprocess.run([*compiler, *flags, "-o", str(library), str(source)], check=True)
        return library

    return make


def call_module(input_shape: Shape, output_shape: Shape) -> tvm.IRModule:
    """main(x) that is one call of the subgraph's function."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(input_shape, "float32"))
    result = relax.TensorType(output_shape, "float32")
    with builder.function("main", [x]):
        call = relax.call_dps_packed(SYMBOL, relax.Tuple([x]), result)
        builder.emit_func_output(builder.emit(call))
    return builder.get()


def add_module() -> tvm.IRModule:
    """The same sum as `encoded_add`, on the CPU."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        total = builder.emit(relax.op.add(x, relax.const(FILE_CONSTANT)))
        builder.emit_func_output(builder.emit(relax.op.add(total, relax.const(INLINE_CONSTANT))))
    return builder.get()


@dataclass(frozen=True)
class Platform:
    """What model libraries are compiled for, and how they are linked."""

    triple: str
    target: Mapping[str, str]
    link: Callable[..., None] | None = None

    def export(self, module: tvm.IRModule, path: Path) -> None:
        executable = relax.build(module, tvm.target.Target(dict(self.target)))
        options = {} if self.link is None else {"fcompile": self.link}
        executable.export_library(str(path), **options)


HOST = Platform("x86_64-linux-gnu.2.28", {"kind": "llvm"})


def link_arm64(output: str, objects: list[str], **_: Any) -> None:
    compiler = [toolchain.zig_path(), "cc", "-target", "aarch64-linux-gnu.2.28"]
    # What TVM's runtime defines is found when the library is loaded.
    flags = ["-shared", "-Wl,-z,undefs", "-o", output]
    subprocess.run([*compiler, *flags, *objects], check=True)


link_arm64.object_format = "o"  # type: ignore[attr-defined]
link_arm64.get_target_triple = lambda: "aarch64-linux-gnu"  # type: ignore[attr-defined]

ARM64 = Platform(
    "aarch64-linux-gnu.2.28",
    {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"},
    link_arm64,
)


@pytest.fixture(scope="session")
def arm64() -> Platform:
    return ARM64


@pytest.fixture(scope="session")
def twin_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Platform], bytes]:
    made: dict[str, bytes] = {}

    def make(platform: Platform) -> bytes:
        if platform.triple not in made:
            path = tmp_path_factory.mktemp("twin") / "model_cpu.so"
            platform.export(add_module(), path)
            made[platform.triple] = path.read_bytes()
        return made[platform.triple]

    return make


def manifest(sizes: Mapping[str, int], shapes: tuple[Shape, Shape]) -> Json:
    roles = {"model.so": "library", "model_cpu.so": "cpu_twin", "weights.bin": "weights"}
    return {
        "format": "nnfarm.package",
        "format_version": 1,
        "entry": "main",
        "signature": {
            "inputs": [{"name": "x", "dtype": "float32", "shape": list(shapes[0])}],
            "outputs": [{"name": "sum", "dtype": "float32", "shape": list(shapes[1])}],
        },
        "subgraph_count": 1,
        "offloaded_count": 2,
        "operation_count": 2,
        "parts": [
            {"role": roles[name], "path": name, "sha256": "0" * 64, "size_bytes": size}
            for name, size in sizes.items()
        ],
    }


@pytest.fixture
def make_package(
    tmp_path: Path, player: Callable[..., Any], twin_library: Callable[[Platform], bytes]
) -> Callable[..., Package]:
    """Builds a package around an encoded model, `encoded_add` unless another is given."""

    def make(
        document: Json | None = None,
        weights: bytes = FILE_CONSTANT.tobytes(),
        shapes: tuple[Shape, Shape] = (SHAPE, SHAPE),
        platform: Platform = HOST,
    ) -> Package:
        folder = tmp_path / "package"
        folder.mkdir()
        embedded = player(encoded_add() if document is None else document)
        module = call_module(*shapes).with_attr("external_mods", [embedded])
        platform.export(module, folder / "model.so")
        (folder / "model_cpu.so").write_bytes(twin_library(platform))
        (folder / "weights.bin").write_bytes(weights)
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        package = Package(folder, manifest(sizes, shapes))
        package.write_manifest()
        return package

    return make


@pytest.fixture
def package(make_package: Callable[..., Package]) -> Package:
    return make_package()


@dataclass(frozen=True)
class Runner:
    """Calls a runner, on the fault library unless told: run("--package", p, FAULT_CRASH="...")."""

    command: tuple[str | Path, ...]
    fault_library: Callable[..., Path]
    triple: str = HOST.triple

    def __call__(self, *arguments: str | Path, symbols: int = 5, **environment: str) -> RunResult:
        command = [*self.command, *arguments]
        if "--nnapi-library" not in arguments:
            command += ["--nnapi-library", self.fault_library(symbols, self.triple)]
        command += ["--warmup", "1", "--iterations", "5", "--min-duration-ms", "1"]
        finished = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            env={**os.environ, **environment},
            check=False,
        )
        events = [json.loads(line) for line in finished.stdout.splitlines()]
        return RunResult(finished.returncode, events, finished.stderr)


@pytest.fixture(scope="session")
def run(bundle: Path, fault_library: Callable[..., Path]) -> Runner:
    return Runner((bundle / "nnfarm_runner",), fault_library)


@pytest.fixture(scope="session")
def run_arm64(fault_library: Callable[..., Path]) -> Runner:
    runner = build.build("linux-aarch64") / "nnfarm_runner"
    emulator = ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu")
    return Runner((*emulator, runner), fault_library, ARM64.triple)


@pytest.fixture(scope="session")
def run_sanitized(fault_library: Callable[..., Path]) -> Runner:
    return Runner((build.build("sanitize") / "nnfarm_runner",), fault_library)


@pytest.fixture(scope="session")
def bundle_from_source() -> Path:
    return build.build("linux-x86_64-source")


@pytest.fixture(scope="session")
def run_from_source(bundle_from_source: Path, fault_library: Callable[..., Path]) -> Runner:
    return Runner((bundle_from_source / "nnfarm_runner",), fault_library)


@pytest.fixture
def encoded() -> Json:
    return encoded_add()
