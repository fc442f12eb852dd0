"""Zig from PyPI as C compiler, linker (LLD) and source of compiler-rt: no NDK is needed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from workers.toolchain.process import run_tool

_COMPILE_TIMEOUT_S = 300.0  # the first call may have to wait for a busy machine
_LINK_TIMEOUT_S = 120.0


class Zig:
    """The zig executable of the `ziglang` package.

    Args:
        cache_dir: where zig keeps what it has compiled. Given, not taken from HOME: a sandboxed
            process has none.
    """

    def __init__(self, cache_dir: Path) -> None:
        spec = importlib.util.find_spec("ziglang")
        if spec is None or spec.origin is None:
            raise RuntimeError("The Python package ziglang is not installed; see pyproject.toml.")
        self._home = Path(spec.origin).parent
        self._cache_dir = cache_dir

    @property
    def version(self) -> str:
        """Version of the package, hence of LLD and compiler-rt."""
        return importlib.metadata.version("ziglang")

    def compile_c(self, source: Path, output: Path, target: str) -> None:
        """Compiles freestanding C: no headers, no built-in functions."""
        flags = ["-c", "-O1", "-g0", "-fPIC", "-fno-builtin", "-ffunction-sections", "-w"]
        self._run(["cc", "-target", target, *flags, str(source), "-o", str(output)])

    def assemble(self, source: Path, output: Path, target: str) -> None:
        """Assembles one file, past zig's cache, which knows nothing of included binaries."""
        self._run(["clang", "-target", target, "-c", source.name, "-o", str(output)], source.parent)

    def compile_builtins(self, output: Path, target: str, cpu: str) -> None:
        """Compiles compiler-rt to one object with a section for each function."""
        source = self._home / "lib" / "compiler_rt.zig"
        flags = ["-O", "ReleaseFast", "-fstrip", "-fPIC", "-ffunction-sections"]
        files = ["--name", "builtins", f"-femit-bin={output}"]
        # The folder is set because zig leaves a .zig-cache behind where it runs.
        command = ["build-obj", str(source), "-target", target, f"-mcpu={cpu}", *flags, *files]
        self._run(command, output.parent)

    def link(self, arguments: Sequence[str]) -> None:
        """Runs LLD's ELF linker."""
        self._run(["ld.lld", *arguments], timeout_s=_LINK_TIMEOUT_S)

    def _run(
        self,
        arguments: Sequence[str],
        folder: Path | None = None,
        timeout_s: float = _COMPILE_TIMEOUT_S,
    ) -> None:
        # Nothing is inherited, so that no CFLAGS or LD_* of this machine shapes an artifact.
        environment = {
            "ZIG_GLOBAL_CACHE_DIR": str(self._cache_dir),
            "ZIG_LOCAL_CACHE_DIR": str(self._cache_dir),
        }
        if folder is not None:  # a sandboxed process may write nowhere else
            environment["TMPDIR"] = str(folder)
        command = [str(self._home / "zig"), *arguments]
        run_tool(command, timeout_s=timeout_s, environment=environment, folder=folder)
