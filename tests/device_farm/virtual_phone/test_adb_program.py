"""The daemon against the real adb program."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import AdbServer
from tests.device_farm.conftest import MakePhone

Adb = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def adb(adb_server: AdbServer) -> Adb:
    def run(
        phone: AdbDevice, *arguments: str, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        program = [str(adb_server.program), "-P", str(adb_server.port), "-s", phone.serial]
        return subprocess.run(
            [*program, *arguments], input=stdin, capture_output=True, timeout=60, check=False
        )

    return run


def tmpdir(phone: AdbDevice) -> str:
    return phone.run('echo "$TMPDIR"', timeout_s=10).stdout.strip()


def test_shell_keeps_outputs_apart_and_gives_the_exit_code(adb: Adb, phone: AdbDevice) -> None:
    done = adb(phone, "shell", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_a_signal_is_128_and_its_number(adb: Adb, phone: AdbDevice) -> None:
    assert adb(phone, "shell", "kill -11 $$").returncode == 139


def test_old_shell_and_exec_carry_raw_bytes(adb: Adb, phone: AdbDevice) -> None:
    every_byte = "printf '" + "".join(f"\\{byte:03o}" for byte in range(256)) + "'"
    assert adb(phone, "exec-out", every_byte).stdout == bytes(range(256))
    merged = adb(phone, "shell", "-x", "echo out; echo err >&2")
    assert merged.stdout == b"out\nerr\n"


def test_shell_takes_standard_input_to_its_end(adb: Adb, phone: AdbDevice) -> None:
    data = os.urandom(3_000_000)
    assert adb(phone, "shell", "wc -c", stdin=data).stdout.strip() == b"3000000"


def test_an_interactive_shell_reads_commands(adb: Adb, phone: AdbDevice) -> None:
    assert adb(phone, "shell", stdin=b"echo $((6 * 7))\nexit 3\n").stdout == b"42\n"


def test_large_files_survive_push_and_pull(adb: Adb, phone: AdbDevice, tmp_path: Path) -> None:
    source, back = tmp_path / "big", tmp_path / "back"
    source.write_bytes(os.urandom(20 * 1024 * 1024))
    remote = f"{tmpdir(phone)}/new/folders/big"
    assert adb(phone, "push", str(source), remote).returncode == 0
    assert adb(phone, "pull", remote, str(back)).returncode == 0
    assert back.read_bytes() == source.read_bytes()


def test_mode_bits_and_time_are_kept(adb: Adb, phone: AdbDevice, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o750)
    os.utime(script, (1_600_000_000, 1_600_000_000))
    remote = f"{tmpdir(phone)}/script"
    assert adb(phone, "push", str(script), remote).returncode == 0
    info = Path(remote).stat()
    assert stat.S_IMODE(info.st_mode) == 0o750
    assert info.st_mtime == 1_600_000_000
    assert adb(phone, "shell", remote).stdout == b"ran\n"


def test_folders_are_pushed_listed_and_pulled_whole(
    adb: Adb, phone: AdbDevice, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "a").write_text("A")
    (tree / "inner" / "ü b").write_text("B")
    remote = tmpdir(phone)
    assert adb(phone, "push", str(tree), remote).returncode == 0
    listing = adb(phone, "ls", f"{remote}/tree").stdout.decode().split()
    assert {"a", "inner", ".", ".."} <= set(listing)
    assert adb(phone, "pull", f"{remote}/tree", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back" / "inner" / "ü b").read_text() == "B"


def test_a_missing_file_is_told(adb: Adb, phone: AdbDevice, tmp_path: Path) -> None:
    done = adb(phone, "pull", f"{tmpdir(phone)}/nothing", str(tmp_path / "x"))
    assert done.returncode == 1
    assert b"No such file" in done.stdout + done.stderr


@pytest.mark.parametrize("remote", ["/etc/hostname", "../../../../../../etc/hostname", "/tmp/x"])
def test_paths_outside_are_refused(adb: Adb, phone: AdbDevice, tmp_path: Path, remote: str) -> None:
    source = tmp_path / "f"
    source.write_text("f")
    for done in (
        adb(phone, "push", str(source), remote),
        adb(phone, "pull", remote, str(tmp_path / "got")),
    ):
        assert done.returncode == 1
        assert b"Permission denied" in done.stdout + done.stderr
    assert not (tmp_path / "got").exists()


def test_links_that_lead_outside_are_not_followed(
    adb: Adb, phone: AdbDevice, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link = f"{tmpdir(phone)}/link"
    phone.run(f"ln -s {secret} {link}; ln -s {tmp_path} {link}dir", timeout_s=10)
    assert adb(phone, "pull", link, str(tmp_path / "got")).returncode == 1
    assert adb(phone, "push", str(secret), f"{link}dir/planted").returncode == 1
    assert not (tmp_path / "got").exists()
    assert not (tmp_path / "planted").exists()


def test_two_phones_at_a_time_are_apart(adb: Adb, make_phone: MakePhone) -> None:
    first, second = make_phone(), make_phone("virtual-no-nnapi-x86_64")
    with_sleep = 'echo "$TMPDIR" > "$TMPDIR/mine"; cat "$TMPDIR/mine"'
    homes = {adb(phone, "shell", with_sleep).stdout for phone in (first, second)}
    assert len(homes) == 2


def test_the_banner_promises_what_is_there(adb: Adb, phone: AdbDevice) -> None:
    features = adb(phone, "features").stdout.decode().split()
    assert set(features) == {"shell_v2", "stat_v2", "ls_v2", "fixed_push_mkdir"}
    assert adb(phone, "get-state").stdout == b"device\n"


def test_a_service_that_is_not_there_is_refused(adb: Adb, phone: AdbDevice) -> None:
    done = adb(phone, "root")
    assert done.returncode != 0
    assert adb(phone, "shell", "echo still here").stdout == b"still here\n"


def test_properties_and_services(adb: Adb, phone: AdbDevice) -> None:
    assert adb(phone, "shell", "getprop ro.build.version.sdk").stdout == b"35\n"
    assert adb(phone, "shell", "getprop no.such default").stdout == b"default\n"
    assert b"[ro.nnfarm.virtual]: [1]" in adb(phone, "shell", "getprop").stdout
    assert b"level: 60" in adb(phone, "shell", "dumpsys battery").stdout
    assert b"ThermalStatus: 0" in adb(phone, "shell", "dumpsys thermalservice").stdout
    assert adb(phone, "shell", "dumpsys wifi").returncode == 1


def test_the_environment_is_the_phones_own(adb: Adb, phone: AdbDevice) -> None:
    lines = adb(phone, "shell", "env").stdout.decode().splitlines()
    names = {line.split("=", 1)[0] for line in lines}
    assert names == {
        "HOME", "LANG", "LD_LIBRARY_PATH", "NNFARM_SIM_PROFILE", "PATH", "PWD", "TMPDIR",
    }  # fmt: skip
