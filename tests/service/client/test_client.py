from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.client import Client, CompilationRequest
from service.client.messages import ArtifactId, CompilationId, ModelId
from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi

JOB = CompilationId("cmp_1")


def test_upload_sends_the_file_and_its_hash(client: Client, farm: Any, tmp_path: Path) -> None:
    path = tmp_path / "digits.onnx"
    path.write_bytes(bytes(3_000_000))
    progress: list[tuple[int, int]] = []

    model = client.upload_model(path, on_bytes=lambda done, total: progress.append((done, total)))

    assert farm.uploads[model.sha256] == path.read_bytes()
    assert farm.uploaded_names == ["digits"]
    assert progress[-1] == (3_000_000, 3_000_000)
    assert len(progress) > 2, "read in pieces, not at once"


def test_upload_of_a_missing_file_names_it(client: Client, tmp_path: Path) -> None:
    with pytest.raises(NnfarmError, match=r"nothing\.onnx: No such file") as raised:
        client.upload_model(tmp_path / "nothing.onnx")
    assert raised.value.code == "request.invalid"


def test_a_service_that_starts_late_is_waited_for(
    client: Client, farm: Any, tmp_path: Path
) -> None:
    farm.unavailable_count = 2
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")

    model = client.upload_model(path)

    assert farm.uploads[model.sha256] == b"model", "the retried upload starts from the first byte"
    assert farm.calls == ["POST /v1/models"] * 3


def test_an_unreachable_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.client.connection._PATIENCE_S", 0.0)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url) as client, pytest.raises(NnfarmError, match=url) as raised:
            client.devices()
    assert raised.value.code == "infra.unavailable"


def test_a_refusal_keeps_its_code_and_is_not_repeated(client: Client, farm: Any) -> None:
    with pytest.raises(NnfarmError, match="Feature level 9") as raised:
        client.compile(CompilationRequest(model_id=ModelId("mod_1"), levels=(9,)))
    assert raised.value.code == "compile.bad_level"
    assert farm.calls == ["POST /v1/compilations"]


def test_the_token_is_sent(url: str, farm: Any) -> None:
    with Client(url, token="secret") as client:
        client.devices()
    assert farm.tokens == ["Bearer secret"]


def test_lists_are_read_to_the_last_page(client: Client) -> None:
    assert [model.sha256[0] for model in client.models()] == ["0", "1"]


def test_events_come_in_order_to_the_end(client: Client, farm: Any) -> None:
    events = list(client.follow(JOB))
    assert [event.kind for event in events] == ["progress", "progress", "status"]
    assert events[1].data["stage"] == "build"
    assert farm.last_event_ids == [None]


def test_a_broken_event_stream_goes_on_after_the_last_event(client: Client, farm: Any) -> None:
    farm.break_after_events = [1, 1, 0]

    events = list(client.follow(JOB))

    assert [event.id for event in events] == ["1", "2", "3"], "none lost, none twice"
    assert farm.last_event_ids == [None, "1", "2", "2"]


def test_an_orderly_end_before_the_end_is_taken_up_again(client: Client, farm: Any) -> None:
    farm.is_final = False
    whole = farm.events
    farm.events = whole[:1]
    seen = []
    for event in client.follow(JOB):
        seen.append(event.id)
        farm.events = whole  # what a restarted service has
        farm.is_final = True
    assert seen in (["1"], ["1", "2", "3"])
    assert farm.last_event_ids[0] is None


def test_package_is_saved_whole(client: Client, farm: Any, tmp_path: Path) -> None:
    artifact = client.artifact(ArtifactId("art_4.x86_64"))
    path = tmp_path / "p.zip"
    client.download_package(artifact, path)
    assert path.read_bytes() == farm.package(4, "x86_64")
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.zip"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (lambda farm: setattr(farm, "package_library", b"other bytes"), "request.hash_mismatch"),
        (lambda farm: setattr(farm, "cut_package_at", 100), "infra.unavailable"),
    ],
    ids=["wrong part", "cut off"],
)
def test_a_damaged_download_is_refused_and_leaves_no_file(
    client: Client, farm: Any, tmp_path: Path, fault: Callable[[Any], None], code: str
) -> None:
    artifact = client.artifact(ArtifactId("art_4.x86_64"))
    fault(farm)
    with pytest.raises(NnfarmError) as raised:
        client.download_package(artifact, tmp_path / "p.zip")
    assert raised.value.code == code
    assert list(tmp_path.iterdir()) == []


def test_results_pair_artifacts_with_their_runs(client: Client) -> None:
    request = CompilationRequest(
        model_id=ModelId("mod_1"), levels=(4, 1), abis=(Abi.X86_64, Abi.ARM64_V8A), run_on="any"
    )
    client.compile(request)
    results = client.results(JOB)
    targets = [(result.artifact.abi, result.artifact.feature_level) for result in results]
    assert targets == [("arm64-v8a", 1), ("arm64-v8a", 4), ("x86_64", 1), ("x86_64", 4)]
    assert all(result.run and result.run.artifact_id == result.artifact.id for result in results)


def test_an_answer_of_another_server_is_told_apart(url: str) -> None:
    with Client(f"{url}/v1/page?x=") as client, pytest.raises(NnfarmError) as raised:
        client.devices()
    assert raised.value.code == "bug.internal"


def test_hash_of_an_upload_is_of_its_bytes(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    path.write_bytes(b"data")
    dataset = client.upload_dataset(path, ModelId("mod_1"))
    assert dataset.sha256 == hashlib.sha256(b"data").hexdigest()
