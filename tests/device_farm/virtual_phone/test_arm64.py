"""aarch64 executables on an arm64 phone, through qemu-user."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import AdbServer
from device_farm.virtual_phone import sandbox
from device_farm.virtual_phone.profile import PROFILES_DIR, find_profile
from device_farm.virtual_phone.sandbox import missing_for
from tests.device_farm.conftest import connected, virtual_phones

pytestmark = pytest.mark.arm64


def program(message: bytes, exit_code: int) -> bytes:
    """A whole static aarch64 program: writes the message and ends."""
    code = struct.pack(
        "<8I",
        0xD2800020,  # mov x0, 1
        0x100000E1,  # adr x1, message
        0xD2800002 | len(message) << 5,  # mov x2, length
        0xD2800808,  # mov x8, 64 (write)
        0xD4000001,  # svc 0
        0xD2800000 | exit_code << 5,  # mov x0, code
        0xD2800BA8,  # mov x8, 93 (exit)
        0xD4000001,  # svc 0
    )
    base, start = 0x400000, 64 + 56
    size = start + len(code) + len(message)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, base + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return ident + header + segment + code + message


@pytest.fixture(scope="module")
def arm64_phone(
    adb_server: AdbServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AdbDevice]:
    folder = tmp_path_factory.mktemp("arm64")
    text = (PROFILES_DIR / "virtual-no-nnapi-x86_64.toml").read_text()
    profile = folder / "arm64.toml"
    profile.write_text(text.replace('abi = "x86_64"', 'abi = "arm64-v8a"'))
    with virtual_phones(folder) as make:
        yield connected(adb_server, make(str(profile)))


def push(phone: AdbDevice, data: bytes, tmp_path: Path, name: str) -> str:
    local = tmp_path / "to-push"
    local.write_bytes(data)
    local.chmod(0o755)
    remote = phone.run('echo "$TMPDIR"', timeout_s=10).stdout.strip() + f"/{name}"
    phone.push(local, remote)
    return remote


def test_a_pushed_program_runs_and_keeps_its_size(arm64_phone: AdbDevice, tmp_path: Path) -> None:
    data = program(b"from aarch64\n", 42)
    remote = push(arm64_phone, data, tmp_path, "folder/it's")
    result = arm64_phone.run(f'"{remote}"; echo $?; stat -c %s "{remote}"', timeout_s=30)
    assert result.stdout.splitlines()[:2] == ["from aarch64", "42"]
    assert int(result.stdout.splitlines()[2]) >= len(data)


def test_it_moves_with_its_folder(arm64_phone: AdbDevice, tmp_path: Path) -> None:
    remote = push(arm64_phone, program(b"moved\n", 0), tmp_path, "one/prog")
    folder = remote.rsplit("/", 1)[0]
    result = arm64_phone.run(f"mv {folder} {folder}-two && {folder}-two/prog", timeout_s=30)
    assert result.stdout == "moved\n"


def test_pulling_gives_the_pushed_bytes(arm64_phone: AdbDevice, tmp_path: Path) -> None:
    data = program(b"hello\n", 0) + bytes(10_000)
    remote = push(arm64_phone, data, tmp_path, "prog")
    assert Path(remote).stat().st_size == len(data)
    arm64_phone.pull(remote, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data


def test_pushing_something_else_replaces_it(arm64_phone: AdbDevice, tmp_path: Path) -> None:
    push(arm64_phone, program(b"hello\n", 0), tmp_path, "prog")
    remote = push(arm64_phone, b"#!/bin/sh\necho script\n", tmp_path, "prog")
    assert arm64_phone.run(remote, timeout_s=10).stdout == "script\n"
    arm64_phone.pull(remote, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"#!/bin/sh\necho script\n"


def test_this_machine_has_what_arm64_phones_need(tmp_path: Path) -> None:
    profile = find_profile("virtual-level8-arm64").model_copy(update={"feature_level": 0})
    assert missing_for(profile, tmp_path) == ""


def test_what_is_missing_is_named_with_its_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "QEMU", tmp_path / "no-qemu")
    reason = missing_for(find_profile("virtual-level8-arm64"), tmp_path)
    for package in ("qemu-user-static", "libc6-arm64-cross", "libstdc++6-arm64-cross"):
        assert package in reason
