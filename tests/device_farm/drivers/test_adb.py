"""The adb driver against a virtual phone, through a real adb server."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import (
    AdbServer,
    AdbServerError,
    carried_adb,
    private_server,
    shared_server,
)
from device_farm.protocols.device import (
    CancelledError,
    DeviceLostError,
    DeviceTimeoutError,
    StorageFullError,
    TransferError,
)
from tests.device_farm.conftest import MakeVirtualPhone


def test_run_gives_outputs_and_exit_code(phone: AdbDevice) -> None:
    result = phone.run("echo ü; echo e >&2; exit 5", timeout_s=10)
    assert (result.exit_code, result.stdout, result.stderr) == (5, "ü\n", "e\n")


def test_lines_come_one_by_one_and_the_last_needs_no_end(phone: AdbDevice) -> None:
    lines: list[str] = []
    phone.run("printf 'a\\nb'; sleep 0.1; printf 'c\\n\\nlast'", timeout_s=10, on_line=lines.append)
    assert lines == ["a", "bc", "", "last"]


def test_lines_come_while_the_command_runs(phone: AdbDevice) -> None:
    seen = threading.Event()
    # The command waits for a file that is made only when its first line has come.
    marker = phone.run('echo "$TMPDIR/go"', timeout_s=10).stdout.strip()

    def on_line(line: str) -> None:
        if line == "ready":
            seen.set()
            Path(marker).touch()

    command = f"echo ready; while [ ! -e {marker} ]; do :; done; echo done"
    assert phone.run(command, timeout_s=10, on_line=on_line).stdout == "ready\ndone\n"
    assert seen.is_set()


def test_a_command_gets_no_standard_input(phone: AdbDevice) -> None:
    assert phone.run("cat; echo end", timeout_s=10).stdout == "end\n"


def test_a_command_that_hangs_times_out_and_is_ended(phone: AdbDevice) -> None:
    lines: list[str] = []
    with pytest.raises(DeviceTimeoutError):
        phone.run("echo $$; sleep 600", timeout_s=0.5, on_line=lines.append)
    # The daemon ends the group as soon as adb has gone; that takes a moment on a busy machine.
    gone = f"while kill -0 {lines[0]} 2>/dev/null; do sleep 0.05; done; echo gone"
    assert phone.run(gone, timeout_s=10).stdout == "gone\n"


def test_cancelling_ends_the_command(phone: AdbDevice) -> None:
    started = threading.Event()
    with pytest.raises(CancelledError):
        phone.run(
            "echo on; sleep 600",
            timeout_s=60,
            on_line=lambda _: started.set(),
            cancelled=started.is_set,
        )


def test_a_phone_that_dies_during_a_command_is_lost(
    adb_server: AdbServer, virtual_phone: MakeVirtualPhone
) -> None:
    dying = virtual_phone()
    address = dying.start()
    assert adb_server.connect(address)
    device = AdbDevice(adb_server, address)
    with pytest.raises(DeviceLostError):
        device.run("echo on; sleep 600", timeout_s=60, on_line=lambda _: dying.stop())
    with pytest.raises(DeviceLostError):
        device.run("echo hi", timeout_s=10)
    with pytest.raises(DeviceLostError):
        device.push(Path(__file__), "x")
    with pytest.raises(DeviceLostError):
        device.properties()
    assert not device.reconnect()


def test_reconnect_gets_a_phone_back(phone: AdbDevice, adb_server: AdbServer) -> None:
    adb_server.disconnect(phone.serial)
    with pytest.raises(DeviceLostError):
        phone.run("echo hi", timeout_s=10)
    assert phone.reconnect()
    assert phone.run("echo hi", timeout_s=10).stdout == "hi\n"


def test_files_that_cannot_be_given_or_taken(phone: AdbDevice, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="No such file"):
        phone.pull("nothing-here", tmp_path / "x")
    with pytest.raises(TransferError, match="Permission denied"):
        phone.push(Path(__file__), "/etc/nnfarm-must-not-be-here")


def test_a_full_phone_is_told_as_such(
    phone: AdbDevice, adb_server: AdbServer, tmp_path: Path
) -> None:
    # The adb program's words when the phone's disk is full; a full disk needs root to arrange.
    program = tmp_path / "adb"
    program.write_text(
        "#!/bin/sh\necho \"adb: error: failed to copy '$6' to '$7': remote couldn't write file: "
        'No space left on device" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    full = AdbDevice(AdbServer(program, adb_server.port), phone.serial)
    with pytest.raises(StorageFullError, match="No space left"):
        full.push(Path(__file__), "x")


def test_properties(phone: AdbDevice) -> None:
    properties = phone.properties()
    assert properties["ro.nnfarm.virtual"] == "1"
    assert properties["ro.product.cpu.abilist"] == "x86_64"


def test_no_server_is_no_phone() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        nowhere = AdbServer(carried_adb(), taken.getsockname()[1])
        assert not nowhere.is_up()
        with pytest.raises(AdbServerError):
            nowhere.devices()
        with pytest.raises(DeviceLostError):
            AdbDevice(nowhere, "x").run("true", timeout_s=1)


def test_a_program_that_is_no_adb_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(AdbServerError, match="ended with code 1"),
        private_server(Path("/bin/false"), tmp_path),
    ):
        pass


def test_a_running_server_is_shared_and_left_running(adb_server: AdbServer) -> None:
    with shared_server(adb_server.program, adb_server.port) as shared:
        assert shared.devices() == adb_server.devices()
    assert adb_server.is_up()
