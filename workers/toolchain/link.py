"""The NDK-free link of TVM's objects into a shared library for Android."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi
from workers.toolchain.process import ToolFailed
from workers.toolchain.stubs import BUILTINS, LIBRARIES, TOOLCHAIN_ABIS, StubStore
from workers.toolchain.targets import MIN_API_LEVEL, triple_for
from workers.toolchain.zig import Zig

_UNDEFINED = re.compile(r"undefined symbol: (\S+)")

# Everything that shapes the bytes is here; none of it depends on the machine.
_FLAGS = (
    "--hash-style=gnu",
    *("-z", "max-page-size=16384"),  # Android 15 maps pages of 16 KiB
    *("-z", "now"),
    *("-z", "relro"),
    *("-z", "noexecstack"),
    *("-z", "defs"),
    "--build-id=sha1",
    "--gc-sections",
    "--strip-all",  # names of TVM's temporary files are in the symbol table
)

_EMBEDDED = """\
.section .rodata,"a",%progbits
.p2align 6
.globl {symbol}
.type {symbol},%object
{symbol}:
.incbin "{file}"
.size {symbol}, . - {symbol}
.section .note.GNU-stack,"",%progbits
"""
"""GNU assembler; "%" and not "@" before types, which is a comment on 32-bit ARM."""


class AndroidLinker:
    """TVM's `fcompile` for one ABI: `executable.export_library(path, fcompile=linker)`.

    The same objects give the same bytes. The library's soname is its file name.

    Args:
        abi: what the objects were compiled for.
        stub_dir: where the stub libraries are kept, made when they are missing.
    """

    object_format = "o"

    def __init__(self, abi: Abi, stub_dir: Path) -> None:
        self.abi = abi
        self.triple = triple_for(abi)
        self._zig = Zig(stub_dir / "zig-cache")
        self._stubs = StubStore(stub_dir, self._zig)

    def get_target_triple(self) -> str:
        """TVM asks for it when no module of a library tells its target (all is offloaded)."""
        return self.triple

    def embed(self, data: Path, symbol: str, output: Path) -> None:
        """Makes an object file of a file's bytes, read-only, under a global name.

        Args:
            data: stands in the folder that the assembler works in.
            symbol: of the first byte.
            output: the object file.
        """
        source = data.with_suffix(".S")
        source.write_text(_EMBEDDED.format(symbol=symbol, file=data.name))
        self._zig.assemble(source, output, self.triple)

    def prepare(self) -> None:
        """Makes the stub libraries now, so that no job waits for them."""
        self._stubs.folder_for(self.abi)

    def __call__(self, output: str, objects: Sequence[str]) -> None:
        """Links `objects` into the shared library `output`.

        Raises:
            ValueError: an input is not an object file.
            NnfarmError: `compile.unsupported_model` when the code calls a function that Android
                does not have; `bug.internal` when the linker fails otherwise.
        """
        if alien := [name for name in objects if not name.endswith(".o")]:
            raise ValueError(f"Only object files can be linked for Android, got {alien}.")
        stubs = self._stubs.folder_for(self.abi)
        inputs = [*objects, str(stubs / BUILTINS), "--as-needed", f"-L{stubs}"]
        libraries = [f"-l:{library}" for library in LIBRARIES]
        head = ["-shared", "-m", TOOLCHAIN_ABIS[self.abi].emulation, *_FLAGS]
        names = ["-soname", Path(output).name, "-o", output]
        try:
            self._zig.link([*head, *names, *inputs, *libraries])
        except ToolFailed as error:
            raise _explain(error, self.abi) from error


def _explain(error: ToolFailed, abi: Abi) -> NnfarmError:
    missing = sorted(set(_UNDEFINED.findall(error.output)))
    if missing:
        return NnfarmError(
            "compile.unsupported_model",
            f"The compiled model calls functions that Android API {MIN_API_LEVEL} does not have: "
            f"{', '.join(missing)}.",
            symbols=missing,
            abi=str(abi),
        )
    return NnfarmError("bug.internal", f"The linker failed for {abi}: {error}", abi=str(abi))
