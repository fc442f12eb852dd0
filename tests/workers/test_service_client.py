import hashlib
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fake_service import WORKER_TOKEN, FakeService

from service.contracts.errors import NnfarmError
from service.contracts.jobs import Stage, StageEvent
from workers.service_client import JobClient, ServiceClient
from workers.tasks.compile import COMPILATION


@pytest.fixture
def client(service: FakeService) -> Iterator[ServiceClient]:
    connection = ServiceClient(service.url, WORKER_TOKEN)
    yield connection
    connection.close()


@pytest.fixture
def job(service: FakeService, client: ServiceClient) -> Iterator[JobClient]:
    name = service.add_job(b"model")
    ticket = client.claim(COMPILATION, name, "here")
    with client.job(COMPILATION, name, ticket) as connection:
        yield connection


def test_claim_gives_the_job(service: FakeService, client: ServiceClient) -> None:
    name = service.add_job(b"model", b"dataset", attempt=3)
    assert client.claim(COMPILATION, name, "here") == service.jobs[name]


def test_problem_of_the_service_is_raised_as_it_is(client: ServiceClient) -> None:
    with pytest.raises(NnfarmError) as caught:
        client.claim(COMPILATION, "cmp_none", "here")
    assert caught.value.code == "request.not_found"


def test_wrong_token(service: FakeService) -> None:
    name = service.add_job(b"model")
    with (
        closing(ServiceClient(service.url, "guessed")) as client,
        pytest.raises(NnfarmError) as caught,
    ):
        client.claim(COMPILATION, name, "here")
    assert caught.value.code == "request.unauthorized"


@pytest.mark.parametrize("status", [500, 502, 503])
def test_server_errors_are_tried_again(
    service: FakeService, client: ServiceClient, status: int
) -> None:
    service.answers = [status, status, 200]
    client.claim(COMPILATION, service.add_job(b"model"), "here")
    assert service.calls["claim"] == 3


def test_client_errors_are_not_tried_again(service: FakeService, client: ServiceClient) -> None:
    service.answers = [404]
    with pytest.raises(NnfarmError, match="was answered 404") as caught:
        client.claim(COMPILATION, service.add_job(b"model"), "here")
    assert caught.value.code == "bug.internal"
    assert service.calls["claim"] == 1


def test_lasting_server_error_is_an_infrastructure_error(
    service: FakeService, client: ServiceClient
) -> None:
    service.answers = [500] * 100
    with pytest.raises(NnfarmError, match="answered 500") as caught:
        client.claim(COMPILATION, service.add_job(b"model"), "here")
    assert caught.value.code == "infra.unavailable"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        closing(ServiceClient(f"http://127.0.0.1:{port}", WORKER_TOKEN)) as client,
        pytest.raises(NnfarmError, match="ConnectError") as caught,
    ):
        client.claim(COMPILATION, "cmp_0", "here")
    assert caught.value.code == "infra.unavailable"


def test_events(service: FakeService, job: JobClient) -> None:
    job.send_events([])
    job.send_events([StageEvent(stage=Stage.BUILD, done=1, total=2)])
    assert [event.stage for event in service.events] == [Stage.BUILD]


def test_download(service: FakeService, job: JobClient, tmp_path: Path) -> None:
    content = bytes(3_000_000)
    job.download(service.add_blob(content), tmp_path / "blob")
    assert (tmp_path / "blob").read_bytes() == content


def test_download_of_other_bytes(service: FakeService, job: JobClient, tmp_path: Path) -> None:
    service.damaged_blobs = True
    with pytest.raises(NnfarmError) as caught:
        job.download(service.add_blob(b"good"), tmp_path / "blob")
    assert caught.value.code == "infra.storage"


def test_upload_once(service: FakeService, job: JobClient, tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_000
    (tmp_path / "blob").write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    service.answers = [200, 503, 200]
    job.upload(sha256, tmp_path / "blob")
    job.upload(sha256, tmp_path / "blob")
    assert service.blobs[sha256] == content
    assert service.calls["PUT"] == 2  # one refused, one taken; none for the second upload
