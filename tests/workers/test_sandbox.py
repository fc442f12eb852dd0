import dataclasses
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.jobs import CompileOutcome, StageEvent
from workers.confine import SandboxLimits, hide_memory
from workers.sandbox import JobAbandoned, Sandbox, SandboxResult
from workers.tasks.compile import COMPILATION

FAKE = dataclasses.replace(COMPILATION, entry="fake_child")
LIMITS = SandboxLimits(
    memory_bytes=4 << 30,
    cpu_s=60,
    wall_s=60.0,
    file_bytes=64 << 20,
    open_files=256,
    require_isolation=True,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = Sandbox([FAKE.entry], LIMITS)
    box.start()
    yield box
    box.close()


@pytest.fixture
def limited(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    box = Sandbox([FAKE.entry], dataclasses.replace(LIMITS, **request.param))
    yield box
    box.close()


def run(box: Sandbox, folder: Path, do: str, **arguments: Any) -> SandboxResult[CompileOutcome]:
    (folder / "job.json").write_text(json.dumps({"do": do, **arguments}))
    return box.run(FAKE, folder, lambda _: None, threading.Event())


def failure(result: SandboxResult[CompileOutcome]) -> NnfarmError:
    assert isinstance(result.outcome, NnfarmError), result.outcome
    assert result.blobs == {}
    return result.outcome


def test_good_end_gives_outcome_blobs_and_events(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"do": "build"}')
    events: list[StageEvent] = []
    result = sandbox.run(FAKE, tmp_path, events.append, threading.Event())
    assert isinstance(result.outcome, CompileOutcome), result
    assert [event.done for event in events] == [0, 1]
    assert sorted(path.read_text() for path in result.blobs.values()) == [
        "expected",
        "inputs",
        "library",
    ]
    assert 0 < result.outcome.child_duration_us < 10_000_000


def test_warm_children_start_in_milliseconds(sandbox: Sandbox, tmp_path: Path) -> None:
    started_s = time.monotonic()
    assert isinstance(run(sandbox, tmp_path, "build").outcome, CompileOutcome)
    assert time.monotonic() - started_s < 1.0


def test_reported_problem_comes_back_whole(sandbox: Sandbox, tmp_path: Path) -> None:
    error = failure(run(sandbox, tmp_path, "refuse"))
    assert (error.code, error.detail) == ("model.unreadable", "No model at all.")
    assert error.details == {"position": 3}


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_signal_is_a_named_crash_with_its_log(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    result = run(sandbox, tmp_path, "crash", number=signal.Signals[name].value)
    assert failure(result).code == "compile.crashed"
    assert failure(result).details == {"signal": name}
    assert "last words" in result.log_tail


def test_exception_is_a_crash_with_its_trace(sandbox: Sandbox, tmp_path: Path) -> None:
    result = run(sandbox, tmp_path, "raise_error")
    assert failure(result).code == "compile.crashed"
    assert failure(result).kind.error_class is ErrorClass.BUG
    assert "RuntimeError: the child broke" in result.log_tail


@pytest.mark.parametrize("do", ["allocate", "abort_for_memory"])
def test_memory_limit(sandbox: Sandbox, tmp_path: Path, do: str) -> None:
    error = failure(run(sandbox, tmp_path, do))
    assert error.code == "compile.limit_exceeded"
    assert error.details == {"limit": "memory_bytes", "value": LIMITS.memory_bytes}
    assert "4096 MiB" in error.detail


@pytest.mark.parametrize("limited", [{"cpu_s": 1}], indirect=True)
def test_cpu_limit(limited: Sandbox, tmp_path: Path) -> None:
    error = failure(run(limited, tmp_path, "spin"))
    assert error.code == "compile.limit_exceeded"
    assert error.details == {"limit": "cpu_s", "value": 1}


@pytest.mark.parametrize("limited", [{"file_bytes": 1 << 20}], indirect=True)
def test_file_limit(limited: Sandbox, tmp_path: Path) -> None:
    error = failure(run(limited, tmp_path, "fill_disk"))
    assert error.code == "compile.limit_exceeded"
    assert error.details["limit"] == "file_bytes"


def processes_in(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("limited", [{"wall_s": 0.5}], indirect=True)
def test_time_limit_ends_the_whole_group(limited: Sandbox, tmp_path: Path) -> None:
    error = failure(run(limited, tmp_path, "hang"))
    assert error.code == "compile.limit_exceeded"
    assert error.details == {"limit": "wall_s", "value": 0.5}
    assert_gone(tmp_path)


def assert_gone(folder: Path) -> None:
    deadline_s = time.monotonic() + 10
    while left := processes_in(folder):
        assert time.monotonic() < deadline_s, left
        threading.Event().wait(0.01)


def test_cancel_kills_the_child(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"do": "hang"}')
    cancelled = threading.Event()
    with pytest.raises(JobAbandoned):
        sandbox.run(FAKE, tmp_path, lambda _: cancelled.set(), cancelled)
    assert_gone(tmp_path)


def test_child_has_no_network_secrets_or_privileges(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path_factory.mktemp("service") / "keys"
    secret.write_text("secret")
    monkeypatch.setenv("NNFARM_WORKER_TOKEN", "secret")
    hide_memory()
    box = Sandbox([FAKE.entry], LIMITS)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        places = {"port": port, "worker_pid": os.getpid(), "secret": str(secret)}
        result = run(box, tmp_path, "look_around", **places)
    box.close()
    line = next(line for line in result.log_tail.splitlines() if line.startswith("FOUND "))
    found = json.loads(line.removeprefix("FOUND "))
    assert found["network"].startswith("closed")
    assert found["signals"].startswith("closed")
    assert found["files"] == dict.fromkeys("rw", "closed: Permission denied")
    assert not any(found["secrets"].values()), found
    assert [name for name in found["environment"] if name.startswith("NNFARM")] == []
    assert {"HOME", "TMPDIR"} <= set(found["environment"])
    assert found["folder"] == str(tmp_path)
    assert found["session_leader"]
    assert found["privileges"] == ["NoNewPrivs:\t1"]
    assert len(found["descriptors"]) == 4  # the three standard ones and the listing's own
    assert result.log_tail.startswith("No network: own user, network")
    assert "No files but its own." in result.log_tail


@pytest.mark.parametrize(
    ("do", "arguments", "reason"),
    [
        ("link_blob", {}, "not readable as a plain file"),
        ("link_blobs", {}, "not readable as a plain file"),
        ("lose_blob", {}, "No such file"),
        ("falsify_blob", {}, "has 5 bytes with the SHA-256"),
        ("build", {"sha256": "../../etc/passwd"}, "is not a SHA-256"),
        ("build", {"size_bytes": 6}, "has 7 bytes"),
        ("pipe_outcome", {}, "not a plain file"),
        ("garbage", {}, "not valid"),
    ],
)
def test_untrusted_results_are_refused(
    sandbox: Sandbox, tmp_path: Path, do: str, arguments: dict[str, Any], reason: str
) -> None:
    error = failure(run(sandbox, tmp_path, do, **arguments))
    assert error.code == "compile.crashed"
    assert reason in error.detail


def test_no_result_at_all_is_a_crash(sandbox: Sandbox, tmp_path: Path) -> None:
    result = run(sandbox, tmp_path, "look_around", port=1, worker_pid=1)
    assert failure(result).detail == "The compiler ended well but left no result."


@pytest.mark.parametrize("limited", [{}], indirect=True)
def test_dead_server_is_an_infrastructure_error_and_restarts(
    limited: Sandbox, tmp_path: Path
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    (first / "job.json").write_text('{"do": "hang"}')

    def kill_server(_: StageEvent) -> None:
        os.kill(int((first / "server.pid").read_text()), signal.SIGKILL)

    assert (
        failure(limited.run(FAKE, first, kill_server, threading.Event())).code
        == "infra.worker_lost"
    )
    assert_gone(first)
    assert isinstance(run(limited, second, "build").outcome, CompileOutcome)


def test_children_run_side_by_side(sandbox: Sandbox, tmp_path: Path) -> None:
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    slow.mkdir()
    quick.mkdir()
    (slow / "job.json").write_text('{"do": "hang"}')
    running, cancelled = threading.Event(), threading.Event()
    abandoned: list[bool] = []

    def hang() -> None:
        with pytest.raises(JobAbandoned):
            sandbox.run(FAKE, slow, lambda _: running.set(), cancelled)
        abandoned.append(True)

    thread = threading.Thread(target=hang)
    thread.start()
    assert running.wait(30)
    assert isinstance(run(sandbox, quick, "build").outcome, CompileOutcome)
    cancelled.set()
    thread.join(30)
    assert abandoned == [True]


def test_unknown_entry_is_reported() -> None:
    with pytest.raises(NnfarmError, match="could not import no_such_module") as caught:
        Sandbox(["no_such_module"], LIMITS).start()
    assert caught.value.code == "infra.unavailable"
