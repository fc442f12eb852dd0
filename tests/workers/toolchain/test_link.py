import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from elftools.elf.elffile import ELFFile
from tvm import relax

from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi
from workers.toolchain.link import AndroidLinker
from workers.toolchain.stubs import LIBRARIES, symbols
from workers.toolchain.targets import target_for

_MACHINES = {Abi.ARM64_V8A: "EM_AARCH64", Abi.ARMEABI_V7A: "EM_ARM", Abi.X86_64: "EM_X86_64"}
_PAGE = 16384
_WEIGHTS = np.random.default_rng(7).normal(size=(16, 16)).astype("float32")
_KERNEL = np.random.default_rng(8).normal(size=(4, 3, 3, 3)).astype("float32")

_RUN = """
import sys, numpy as np, tvm
from tvm import relax
vm = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
given = np.load(sys.argv[2])
outputs = vm["main"](tvm.runtime.tensor(given["x"]), tvm.runtime.tensor(given["image"]))
np.savez(sys.argv[3], *[output.numpy() for output in outputs])
"""


def _model() -> tvm.IRModule:
    """Calls libm (exp, erf, tanh), integer division, float16 and a parallel convolution."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 16), "float32"))
    image = relax.Var("image", relax.TensorType((1, 3, 16, 16), "float32"))
    with builder.function("main", [x, image]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, relax.const(_WEIGHTS)))
            waves = builder.emit(relax.op.add(relax.op.erf(product), relax.op.tanh(product)))
            soft = builder.emit(relax.op.nn.softmax(relax.op.add(waves, relax.op.exp(waves))))
            half = builder.emit(relax.op.astype(relax.op.astype(soft, "float16"), "float32"))
            whole = builder.emit(relax.op.astype(relax.op.multiply(x, _float(100)), "int32"))
            parts = builder.emit(relax.op.floor_divide(whole, relax.op.add(whole, _int(1000))))
            conv = builder.emit(relax.op.nn.conv2d(image, relax.const(_KERNEL), padding=(1, 1)))
            result = builder.emit_output(relax.Tuple([half, parts, conv]))
        builder.emit_func_output(result)
    return builder.get()


def _float(value: float) -> Any:
    return relax.const(value, "float32")


def _int(value: int) -> Any:
    return relax.const(value, "int32")


def _build(abi: Abi, path: Path, stub_dir: Path) -> Path:
    target = tvm.target.Target(target_for(abi))
    executable = tvm.compile(_model(), target)
    executable.export_library(str(path), fcompile=AndroidLinker(abi, stub_dir))
    return path


@pytest.fixture(scope="module", params=list(Abi))
def library(
    request: pytest.FixtureRequest, stub_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Abi, Path]:
    abi = request.param
    return abi, _build(abi, tmp_path_factory.mktemp(str(abi)) / "model.so", stub_dir)


def test_library_is_what_android_loads(library: tuple[Abi, Path]) -> None:
    abi, path = library
    with path.open("rb") as file:
        elf = ELFFile(file)
        tags = list(elf.get_section_by_name(".dynamic").iter_tags())
        assert elf["e_machine"] == _MACHINES[abi]
        loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        assert {s["p_align"] for s in loads} == {_PAGE}
        assert [t.soname for t in tags if t.entry.d_tag == "DT_SONAME"] == ["model.so"]
        needed = [t.needed for t in tags if t.entry.d_tag == "DT_NEEDED"]
        assert set(needed) <= set(LIBRARIES)
        assert {"libtvm_ffi.so", "libm.so"} <= set(needed)
        assert not [t for t in tags if t.entry.d_tag == "DT_TEXTREL"]
        stack = [s for s in elf.iter_segments() if s["p_type"] == "PT_GNU_STACK"]
        assert [s["p_flags"] & 1 for s in stack] == [0]


def test_undefined_names_are_the_phones(library: tuple[Abi, Path]) -> None:
    abi, path = library
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        undefined = {s.name for s in table.iter_symbols() if s["st_shndx"] == "SHN_UNDEF"} - {""}
    offered = {name for lib in LIBRARIES for name in symbols(Path(lib).stem, abi)}
    assert undefined <= offered
    assert "erff" in undefined  # the phone's own, not a copy out of compiler-rt


def test_same_input_gives_same_bytes(
    library: tuple[Abi, Path], stub_dir: Path, tmp_path: Path
) -> None:
    abi, path = library
    again = _build(abi, tmp_path / "model.so", stub_dir)
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(path.read_bytes()).digest()


def test_x86_64_library_computes_the_right_numbers(stub_dir: Path, tmp_path: Path) -> None:
    path = _build(Abi.X86_64, tmp_path / "model.so", stub_dir)
    given = {
        "x": np.random.default_rng(1).normal(size=(4, 16)).astype("float32"),
        "image": np.random.default_rng(2).normal(size=(1, 3, 16, 16)).astype("float32"),
    }
    np.savez(tmp_path / "in.npz", **given)
    # Bionic's names on glibc's libraries; libtvm_ffi.so is in the process already.
    for name in ("libc.so", "libm.so"):
        (tmp_path / name).symlink_to(f"/lib/x86_64-linux-gnu/{name}.6")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "TVM_NUM_THREADS": "2"}
    command = [sys.executable, "-c", _RUN, str(path), str(tmp_path / "in.npz")]
    subprocess.run([*command, str(tmp_path / "out.npz")], env=environment, check=True, timeout=120)
    with np.load(tmp_path / "out.npz") as outputs:
        half, parts, conv = (outputs[name] for name in outputs.files)
    for computed, expected in zip((half, conv), _expected(**given), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-3, atol=1e-4)
    whole = (given["x"] * np.float32(100)).astype("int32")
    np.testing.assert_array_equal(parts, whole // (whole + 1000))


def _expected(x: np.ndarray, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from math import erf

    product = x @ _WEIGHTS
    waves = np.vectorize(erf)(product) + np.tanh(product)
    waves = np.exp(waves + np.exp(waves))
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return waves / waves.sum(-1, keepdims=True), np.einsum("nchwij,ocij->nohw", windows, _KERNEL)


def _object(source: str, folder: Path, stub_dir: Path) -> Path:
    from workers.toolchain.zig import Zig

    (folder / "code.c").write_text(source)
    zig = Zig(stub_dir / "zig-cache")
    zig.compile_c(folder / "code.c", folder / "code.o", "aarch64-linux-android")
    return folder / "code.o"


def test_unknown_function_is_named(stub_dir: Path, tmp_path: Path) -> None:
    code = _object("int pthread_gadget(void); int f(void) { return pthread_gadget(); }",
                   tmp_path, stub_dir)  # fmt: skip
    with pytest.raises(NnfarmError, match="pthread_gadget") as caught:
        AndroidLinker(Abi.ARM64_V8A, stub_dir)(str(tmp_path / "m.so"), [str(code)])
    assert caught.value.code == "compile.unsupported_model"
    assert caught.value.details == {"symbols": ["pthread_gadget"], "abi": "arm64-v8a"}


def test_object_of_another_machine_is_a_bug(stub_dir: Path, tmp_path: Path) -> None:
    code = _object("int f(void) { return 1; }", tmp_path, stub_dir)
    with pytest.raises(NnfarmError, match="linker failed for x86_64") as caught:
        AndroidLinker(Abi.X86_64, stub_dir)(str(tmp_path / "m.so"), [str(code)])
    assert caught.value.code == "bug.internal"


def test_only_objects_are_linked(stub_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"devc\.c"):
        AndroidLinker(Abi.X86_64, stub_dir)(str(tmp_path / "m.so"), ["devc.c"])
