import ctypes
import multiprocessing
from pathlib import Path

import pytest
import tvm_ffi
from elftools.elf.elffile import ELFFile

from service.contracts.targets import Abi
from workers.toolchain.stubs import BUILTINS, LIBRARIES, StubStore, symbols
from workers.toolchain.zig import Zig


def _prepare(folder: Path, zig_cache: Path) -> Path:
    return StubStore(folder, Zig(zig_cache)).folder_for(Abi.X86_64)


def _defined(path: Path, table: str) -> set[str]:
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(table)
        return {s.name for s in section.iter_symbols() if s["st_shndx"] != "SHN_UNDEF"} - {""}


@pytest.mark.parametrize("abi", list(Abi))
def test_stubs_define_what_is_listed_and_no_more(abi: Abi, stub_dir: Path) -> None:
    folder = StubStore(stub_dir, Zig(stub_dir / "zig-cache")).folder_for(abi)
    for library in LIBRARIES:
        listed = symbols(Path(library).stem, abi)
        assert len(set(listed)) == len(listed) > 5
        assert _defined(folder / library, ".dynsym") == set(listed)


@pytest.mark.parametrize("abi", list(Abi))
def test_builtins_bring_all_helpers_and_nothing_the_phone_has(abi: Abi, stub_dir: Path) -> None:
    folder = StubStore(stub_dir, Zig(stub_dir / "zig-cache")).folder_for(abi)
    defined = _defined(folder / BUILTINS, ".symtab")
    assert set(symbols("builtins", abi)) <= defined
    assert not defined & {*symbols("libc", abi), *symbols("libm", abi)}


def test_arm_helpers_are_listed_for_arm_only() -> None:
    assert "__aeabi_memclr4" in symbols("libc", Abi.ARMEABI_V7A)
    assert "__aeabi_memclr4" not in symbols("libc", Abi.ARM64_V8A)


def test_the_real_libraries_have_every_listed_name() -> None:
    real = ctypes.CDLL(str(Path(tvm_ffi.__file__).parent / "lib" / "libtvm_ffi.so"))
    mathematics = ctypes.CDLL("libm.so.6")
    assert [n for n in symbols("libtvm_ffi", Abi.X86_64) if not hasattr(real, n)] == []
    assert [n for n in symbols("libm", Abi.X86_64) if not hasattr(mathematics, n)] == []


def test_workers_that_start_together_share_one_complete_set(tmp_path: Path, stub_dir: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.starmap(_prepare, [(tmp_path, stub_dir / "zig-cache")] * 2)
    assert first == second
    assert list(tmp_path.iterdir()) == [first]
    assert {path.name for path in first.iterdir()} == {*LIBRARIES, BUILTINS}


def test_a_changed_list_makes_another_set(
    stub_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _prepare(stub_dir, stub_dir / "zig-cache")
    lists = tmp_path / "symbols"
    lists.mkdir()
    for name in ("libc", "libm", "libtvm_ffi", "builtins"):
        text = "\n".join(symbols(name, Abi.X86_64))
        (lists / f"{name}.txt").write_text(text + ("\nerfcx\n" if name == "libm" else "\n"))
    monkeypatch.setattr("workers.toolchain.stubs._SYMBOLS_DIR", lists)
    after = _prepare(tmp_path / "stubs", stub_dir / "zig-cache")
    assert after.name != before.name
    assert "erfcx" in _defined(after / "libm.so", ".dynsym")
