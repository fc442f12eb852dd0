"""The agent as the program it is, against a real HTTP server and real virtual phones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.client.runtime_bundles import bundle_zip
from tests.device_farm.conftest import NO_NNAPI, REPOSITORY
from tests.device_farm.service_stand_in import AGENT_TOKEN, ServiceStandIn, serve
from tests.device_farm.stand_in import GOOD, make_package, make_runtime_dir

Agent = subprocess.Popen[bytes]
StartAgent = Callable[..., Agent]
HANG = "sleep 600"


@pytest.fixture
def state() -> ServiceStandIn:
    return ServiceStandIn()


@pytest.fixture
def url(state: ServiceStandIn) -> Iterator[str]:
    with serve(state) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[StartAgent]:
    with agents(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceStandIn]:
    """A service that has one agent, shared by the tests that only give it runs."""
    state = ServiceStandIn()
    with serve(state) as port, agents(tmp_path_factory.mktemp("agent")) as start:
        start(f"http://127.0.0.1:{port}")
        yield state


@contextmanager
def agents(folder: Path) -> Iterator[StartAgent]:
    """Starts agents; in the end each must stop cleanly on SIGTERM."""
    started: list[Agent] = []
    runtime = make_runtime_dir(folder / "runtime")

    def start(url: str, **settings: str) -> Agent:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "NNFARM_URL": url,
            "NNFARM_AGENT_TOKEN": AGENT_TOKEN,
            "NNFARM_FARM_AGENT_NAME": "farm",
            "NNFARM_FARM_VIRTUAL_PHONES": NO_NNAPI,
            "NNFARM_FARM_USB_PHONES": "false",
            "NNFARM_FARM_RUNTIME_DIR": str(runtime),
            "NNFARM_FARM_SIMULATOR_DIR": str(folder / "no-simulator"),
            "NNFARM_FARM_WORK_DIR": str(folder / "work"),
            "NNFARM_FARM_REPORT_INTERVAL_S": "1",
            **settings,
        }
        with (folder / f"agent{len(started)}.log").open("wb") as errors:
            agent = subprocess.Popen(
                [sys.executable, "-m", "device_farm.agent"],
                env=environment,
                cwd=REPOSITORY,
                stderr=errors,
            )
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.terminate()
    codes = [agent.wait(30) for agent in started]
    for log in folder.glob("agent*.log"):
        print(log.read_text())
    assert set(codes) <= {0}


def test_a_run_is_leased_carried_out_and_reported(busy: ServiceStandIn) -> None:
    busy.add_run("good", make_package())
    report = busy.wait_for_report("good")
    assert report.problem is None
    assert report.measurement is not None
    assert report.measurement.engine == "nnapi"
    assert report.measurement.latency.simulated
    assert report.measurement.accuracy.max_abs_error == 0.0
    assert report.log_tail == "a log line\n"
    (device,) = busy.announced[-1].devices
    assert device.serial == f"{NO_NNAPI}@farm"
    assert device.simulated
    assert busy.leased["good"] == device.serial


def test_what_was_downloaded_is_not_downloaded_again(busy: ServiceStandIn) -> None:
    package = make_package(GOOD + "# another part\n")
    for run_id in ("first", "again"):
        busy.add_run(run_id, package)
        assert busy.wait_for_report(run_id).measurement is not None
    assert len(busy.downloads) == len(set(busy.downloads))
    assert set(package.blobs) <= set(busy.downloads)


def test_a_problem_is_reported_with_its_code_and_log(busy: ServiceStandIn) -> None:
    busy.add_run("crash", make_package("echo oops >&2; kill -SEGV $$"))
    report = busy.wait_for_report("crash")
    assert report.measurement is None
    assert report.problem is not None
    assert (report.problem.code, report.problem.error_class) == ("run.crashed", "device")
    assert "oops" in report.log_tail


def test_damaged_downloads_are_not_run(busy: ServiceStandIn) -> None:
    package = make_package(GOOD + "# damaged\n")
    busy.add_run("damaged", package, damaged=package.manifest.parts[0].sha256)
    problem = busy.wait_for_report("damaged").problem
    assert problem is not None
    assert problem.code == "infra.storage"


def test_leases_are_kept_by_heartbeats_and_lost_ones_abandoned(busy: ServiceStandIn) -> None:
    busy.add_run("lost", make_package(HANG), lease_s=0.3, timeout_s=300)
    busy.wait_until(lambda: busy.heartbeats.count("lost") >= 2)
    busy.note(lambda: busy.fenced.add("lost"))
    # The phone is free again long before the run's own time-out, and nothing is reported.
    busy.add_run("next", make_package())
    assert busy.wait_for_report("next").measurement is not None
    assert "lost" not in busy.reports


def test_a_phone_that_dies_is_lost_and_started_again(busy: ServiceStandIn) -> None:
    # The run ends the phone itself: the runner's parent is the phone's daemon.
    busy.add_run("deadly", make_package("kill -9 $PPID; sleep 600"), timeout_s=300)
    problem = busy.wait_for_report("deadly").problem
    assert problem is not None
    assert problem.code == "run.device_lost"
    busy.add_run("revived", make_package())
    assert busy.wait_for_report("revived").measurement is not None


def test_a_stopping_agent_gives_its_run_back(
    state: ServiceStandIn, url: str, start_agent: StartAgent
) -> None:
    state.add_run("run_1", make_package(HANG), lease_s=0.3, timeout_s=300)
    agent = start_agent(url)
    state.wait_until(lambda: state.heartbeats)
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(30) == 0
    problem = state.reports["run_1"].problem
    assert problem is not None
    assert (problem.code, problem.error_class) == ("infra.unavailable", "infra")
    assert state.announced[-1].devices == ()


def test_the_service_may_come_later_and_go_away(
    state: ServiceStandIn, start_agent: StartAgent
) -> None:
    with serve(ServiceStandIn()) as port:
        pass  # nobody is there now
    agent = start_agent(f"http://127.0.0.1:{port}")
    state.add_run("run_1", make_package())
    for run_id in ("run_1", "run_2"):
        with serve(state, port):
            assert state.wait_for_report(run_id).measurement is not None
        state.add_run("run_2", make_package())
    assert agent.poll() is None


def test_phones_that_cannot_be_played_are_announced_with_the_reason(
    state: ServiceStandIn, url: str, start_agent: StartAgent
) -> None:
    start_agent(url, NNFARM_FARM_VIRTUAL_PHONES=f"{NO_NNAPI}, virtual-level4-x86_64")
    state.wait_until(lambda: state.announced and len(state.announced[-1].devices) == 2)
    devices = {device.name: device for device in state.announced[-1].devices}
    assert devices[NO_NNAPI].reason_unusable == ""
    reason = devices["virtual-level4-x86_64"].reason_unusable
    assert "python -m device_farm.simulator.build linux-x86_64" in reason


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"NNFARM_FARM_VIRTUAL_PHONES": "virtual-level99"}, 1, "no profile 'virtual-level99'"),
        ({"NNFARM_FARM_REPORT_INTERVAL_S": "0"}, 2, "report_interval_s"),
        ({"NNFARM_FARM_ADB_PATH": "/no/adb"}, 1, "/no/adb"),
    ],
)
def test_bad_settings_end_it_with_a_clear_line(
    tmp_path: Path, settings: dict[str, str], code: int, words: str
) -> None:
    environment = {
        "NNFARM_AGENT_TOKEN": "x",
        "NNFARM_FARM_VIRTUAL_PHONES": NO_NNAPI,
        "NNFARM_FARM_WORK_DIR": str(tmp_path),
        "NNFARM_FARM_USB_PHONES": "false",
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "-m", "device_farm.agent"],
        env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_without_bundles_takes_the_service_s(
    state: ServiceStandIn, url: str, start_agent: StartAgent, tmp_path: Path
) -> None:
    built = make_runtime_dir(tmp_path / "built") / "linux-x86_64"
    state.bundles["linux-x86_64"] = bundle_zip(built)
    empty = str(tmp_path / "empty")
    start_agent(url, NNFARM_FARM_RUNTIME_DIR=empty, NNFARM_FARM_RUNTIME_SOURCE="service")
    state.add_run("good", make_package())
    assert state.wait_for_report("good").problem is None
    assert state.downloads[0] == "linux-x86_64"
