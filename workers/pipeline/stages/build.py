"""Build and link: a Relax module becomes a shared library for one Android ABI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm import relax

from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi, CpuVariant
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import Executable, executable_of
from workers.backends.cpu.tuned import Tunings
from workers.toolchain.link import AndroidLinker
from workers.toolchain.targets import target_for


@dataclass(frozen=True)
class Built:
    """A compiled module.

    Attributes:
        executable: its code, and the memory it takes.
        unscheduled: names of kernels that no schedule covers.
    """

    executable: Executable
    unscheduled: tuple[str, ...]


def build(
    module: tvm.IRModule,
    abi: Abi,
    variant: CpuVariant | None = None,
    tunings: Tunings | None = None,
) -> Built:
    """Compile what is left for the CPU, with LLVM.

    Args:
        module: with calls of external modules where something was offloaded.
        abi: what for.
        variant: of the ABI's processors; None: all of them.
        tunings: schedules of this ABI that measured faster than those of the rules.

    Raises:
        NnfarmError: `compile.unsupported_model`, an operation that TVM cannot lower.
    """
    target = tvm.target.Target(target_for(abi, variant))
    try:
        lowered, unscheduled = lower_for_cpu(module, target, tunings)
        return Built(executable_of(lowered, target), unscheduled)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise NnfarmError(
            "compile.unsupported_model",
            f"TVM cannot compile the model's CPU part: {lines[-1] if lines else error!r}",
        ) from error


def link(executable: relax.VMExecutable, abi: Abi, stub_dir: Path, output: Path) -> None:
    """Write the shared library.

    Raises:
        NnfarmError: what the linker raises.
    """
    linker = AndroidLinker(abi, stub_dir)

    def pack(module: tvm.runtime.Module, is_system: bool, prefix: str, folder: str) -> str:
        """What the executable is beside machine code, its weights among it, as an object file.

        TVM would print the bytes into a module of LLVM's and compile that: twice the memory.
        """
        del is_system, prefix
        data, result = Path(folder) / "executable.bin", Path(folder) / "executable.o"
        data.write_bytes(memoryview(_pack_imports(module).numpy()))
        linker.embed(data, _LIBRARY_SYMBOL, result)
        data.unlink()
        return str(result)

    executable.export_library(str(output), fcompile=_ObjectsOnly(linker), fpack_imports=pack)


_LIBRARY_SYMBOL = "__tvm_ffi__library_bin"
"""Where a loaded library's modules are looked for (tvm_ffi/extra/module.h)."""

_pack_imports = tvm.get_global_func("runtime.ModulePackImportsToTensor")


class _ObjectsOnly:
    """TVM's fcompile over the linker.

    Where nothing was left for the CPU, TVM adds an empty C source in place of the LLVM module, and
    compiler options for it; there is nothing in it to compile.
    """

    object_format = AndroidLinker.object_format

    def __init__(self, linker: AndroidLinker) -> None:
        self._linker = linker

    def get_target_triple(self) -> str:
        """Triple of the module that carries the constants."""
        return self._linker.get_target_triple()

    def __call__(self, output: str, files: Sequence[str], **_: object) -> None:
        sources = [Path(name) for name in files if not name.endswith(".o")]
        for source in sources:
            if _DEFINITION.search(source.read_text("utf-8")):
                raise ValueError(f"{source.name} is not empty and cannot be linked for Android.")
        self._linker(output, [name for name in files if name.endswith(".o")])


_DEFINITION = re.compile(r"^[^#/\n].*\{", re.MULTILINE)
