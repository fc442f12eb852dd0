"""Stub libraries: what an artifact may ask of the phone, and the helpers it must bring along.

A stub `libc.so` has the names of bionic's functions and no code; it lets the linker check every
name now instead of the phone's loader later. `builtins.o` holds compiler-rt's arithmetic helpers
(32-bit ARM has no integer division), which Android expects inside each library.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from service.contracts.targets import Abi
from workers.toolchain.targets import MIN_API_LEVEL
from workers.toolchain.zig import Zig

LIBRARIES = ("libtvm_ffi.so", "libm.so", "libc.so")
"""The only libraries an artifact needs; order of search."""

BUILTINS = "builtins.o"

_SYMBOLS_DIR = Path(__file__).parent / "symbols"
_RECIPE = "2"  # raise when this file changes what it makes from the same lists


@dataclass(frozen=True)
class ToolchainAbi:
    """How the tools name an ABI."""

    zig_target: str
    zig_cpu: str
    emulation: str


TOOLCHAIN_ABIS: dict[Abi, ToolchainAbi] = {
    Abi.ARM64_V8A: ToolchainAbi("aarch64-linux-android", "generic", "aarch64linux"),
    Abi.ARMEABI_V7A: ToolchainAbi("arm-linux-androideabi", "generic+v7a+neon", "armelf_linux_eabi"),
    Abi.X86_64: ToolchainAbi("x86_64-linux-android", "x86_64", "elf_x86_64"),
}


def symbols(name: str, abi: Abi) -> tuple[str, ...]:
    """The names listed for an ABI in a data file of `symbols/`.

    Args:
        name: file name without its ending, e.g. "libm".
        abi: lines that name ABIs after the symbol count for those only.

    Raises:
        ValueError: a line names an unknown ABI.
    """
    found = []
    for line in (_SYMBOLS_DIR / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words and (len(words) == 1 or abi in [Abi(word) for word in words[1:]]):
            found.append(words[0])
    return tuple(found)


class StubStore:
    """Stub libraries on disk, made once per ABI, tool version and content of the lists.

    Several processes may share a folder: a set appears by one rename, complete or not at all.

    Args:
        folder: where the sets are kept.
        zig: the tools that make them.
    """

    def __init__(self, folder: Path, zig: Zig) -> None:
        self._folder = folder
        self._zig = zig

    def folder_for(self, abi: Abi) -> Path:
        """The folder with an ABI's stub libraries and builtins; makes it where it is missing."""
        final = self._folder / f"{abi}-{self._digest(abi)}"
        if final.is_dir():
            return final
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{abi}-", dir=self._folder))
        try:
            self._make(abi, fresh)
            fresh.chmod(0o755)
            fresh.rename(final)
        except OSError:
            # Another process was faster; anything else that went wrong is still an error.
            if not final.is_dir():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return final

    def _digest(self, abi: Abi) -> str:
        lists = ["\n".join(symbols(Path(name).stem, abi)) for name in (*LIBRARIES, BUILTINS)]
        text = "\0".join([_RECIPE, self._zig.version, str(MIN_API_LEVEL), *lists])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _make(self, abi: Abi, folder: Path) -> None:
        tools = TOOLCHAIN_ABIS[abi]
        for library in LIBRARIES:
            source, compiled = folder / f"{library}.c", folder / f"{library}.o"
            names = symbols(Path(library).stem, abi)
            source.write_text("".join(f"void {name}(void) {{}}\n" for name in names))
            self._zig.compile_c(source, compiled, tools.zig_target)
            shared = ["-shared", "-m", tools.emulation, "-soname", library]
            self._zig.link([*shared, "-o", str(folder / library), str(compiled)])
            source.unlink()
            compiled.unlink()
        everything = folder / "compiler_rt.o"
        self._zig.compile_builtins(everything, tools.zig_target, tools.zig_cpu)
        # compiler-rt also defines expf, memset and their like, which would win over the phone's
        # better ones; only what the list roots is kept.
        roots = [f"--undefined={name}" for name in symbols("builtins", abi)]
        kept = ["-r", "--gc-sections", "-m", tools.emulation, *roots]
        self._zig.link([*kept, "-o", str(folder / BUILTINS), str(everything)])
        everything.unlink()
