"""An agent that has no runtime bundles takes the service's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_farm.client import AgentClient
from device_farm.resources.bundles import find_bundle
from device_farm.resources.offered_bundles import fetch_bundles
from service.client.runtime_bundles import bundle_zip
from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi
from tests.device_farm.service_stand_in import AGENT_TOKEN, ServiceStandIn, serve
from tests.device_farm.stand_in import describe_bundle, make_runtime_dir

TARGET = "linux-x86_64"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return make_runtime_dir(tmp_path / "built") / TARGET


@pytest.fixture
def state(built: Path) -> ServiceStandIn:
    state = ServiceStandIn()
    state.bundles[TARGET] = bundle_zip(built)
    return state


@pytest.fixture
def client(state: ServiceStandIn) -> Iterator[AgentClient]:
    with serve(state) as port:
        client = AgentClient(f"http://127.0.0.1:{port}", AGENT_TOKEN)
        yield client
        client.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_bundle_is_fetched_once(
    client: AgentClient, state: ServiceStandIn, built: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "agent" / "runtime"
    assert fetch_bundles(client, folder) == (TARGET,)
    assert fetch_bundles(client, folder) == ()
    assert state.downloads == [TARGET]
    assert contents(folder / TARGET) == contents(built)
    bundle = find_bundle(folder, Abi.X86_64, virtual=True)
    assert [file.name for file in bundle.files] == ["bundle.json", "nnfarm_runner"]
    assert all(file.stat().st_mode & 0o111 for file in bundle.files)


def test_a_newer_bundle_replaces_it(
    client: AgentClient, state: ServiceStandIn, built: Path, tmp_path: Path
) -> None:
    fetch_bundles(client, tmp_path / "runtime")
    (built / "nnfarm_runner").write_text("newer")
    describe_bundle(built, {"nnfarm_runner": "2"})
    state.bundles[TARGET] = bundle_zip(built)
    assert fetch_bundles(client, tmp_path / "runtime") == (TARGET,)
    assert contents(tmp_path / "runtime" / TARGET) == contents(built)


def test_other_bytes_are_refused_and_fetched_again(
    client: AgentClient, state: ServiceStandIn, tmp_path: Path
) -> None:
    state.is_damaging_bundles = True
    with pytest.raises(NnfarmError, match="other bytes") as caught:
        fetch_bundles(client, tmp_path / "runtime")
    assert caught.value.code == "infra.storage"
    assert not (tmp_path / "runtime" / TARGET).exists()
    state.is_damaging_bundles = False
    assert fetch_bundles(client, tmp_path / "runtime") == (TARGET,)


def test_a_zip_that_is_no_bundle_is_refused(
    client: AgentClient, state: ServiceStandIn, tmp_path: Path
) -> None:
    another = {"android-x86_64": state.bundles[TARGET]}
    state.bundles = {TARGET: b"text"}
    with pytest.raises(NnfarmError, match="is none"):
        fetch_bundles(client, tmp_path / "runtime")
    state.bundles = another
    with pytest.raises(NnfarmError, match="another's"):
        fetch_bundles(client, tmp_path / "runtime")


def test_the_zip_of_a_folder_is_always_the_same(built: Path) -> None:
    first = bundle_zip(built)
    (built / "nnfarm_runner").touch()
    assert hashlib.sha256(bundle_zip(built)).digest() == hashlib.sha256(first).digest()
