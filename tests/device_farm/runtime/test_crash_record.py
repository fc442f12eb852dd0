"""What crashed or hung a driver is remembered, and not tried again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CRASH = {"FAULT_CRASH": "ANeuralNetworksCompilation_finish"}
HANG = {"FAULT_HANG": "ANeuralNetworksExecution_burstCompute"}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "crashes.jsonl"


@pytest.fixture
def run_recording(run: Any, record: Path) -> Callable[..., Any]:
    options = ("--crash-record", record, "--trial-timeout-ms", "2000")
    return lambda package, **faults: run("--package", package.folder, *options, **faults)


@pytest.mark.parametrize(
    ("faults", "code"), [(CRASH, "nnapi.driver_crashed"), (HANG, "nnapi.timeout")]
)
def test_the_retry_uses_the_twin_at_once(
    run_recording: Any,
    make_package: Any,
    encoded: Any,
    record: Path,
    tmp_path: Path,
    faults: dict[str, str],
    code: str,
) -> None:
    package = make_package(encoded)
    assert run_recording(package, **faults).one("fallback")["code"] == code
    (line,) = record.read_text().splitlines()
    entry = json.loads(line)
    assert entry["devices"] == ["fault-npu 9.9", "nnapi-reference 9.9"]
    assert entry["subgraphs"] == [hashlib.sha256(json.dumps(encoded).encode()).hexdigest()]
    assert entry["code"] == code

    log = tmp_path / "calls"
    retried = run_recording(package, FAULT_LOG=str(log))  # this time it would not fail
    assert retried.exit_code == 0
    assert retried.one("fallback")["code"] == code
    assert retried.one("fallback")["detail"].startswith("on record, not tried again: ")
    assert retried.one("end")["engine"] == "cpu"
    assert "ANeuralNetworksModel_create" not in log.read_text().split()
    assert record.read_text() == line + "\n"


def test_another_driver_or_model_is_tried(run_recording: Any, package: Any, record: Path) -> None:
    run_recording(package, **CRASH)
    entry = json.loads(record.read_text())
    others = [
        {**entry, "devices": ["fault-npu 9.8", "nnapi-reference 9.9"]},
        {**entry, "subgraphs": ["0" * 64]},
    ]
    record.write_text("".join(json.dumps(other) + "\n" for other in others))
    assert run_recording(package).one("end")["engine"] == "nnapi"


def test_nothing_is_recorded_without_a_crash(
    run_recording: Any, package: Any, record: Path
) -> None:
    assert run_recording(package).one("end")["engine"] == "nnapi"
    failed = run_recording(package, FAULT_FAIL="ANeuralNetworksModel_finish=4")
    assert failed.one("end")["engine"] == "cpu"
    # Before any subgraph was to blame.
    run_recording(package, FAULT_CRASH="ANeuralNetworks_getDeviceCount")
    assert not record.exists()


def test_a_damaged_record_is_an_error(run_recording: Any, package: Any, record: Path) -> None:
    record.write_text("{\n")
    result = run_recording(package)
    assert result.exit_code == 5
    assert "crash record" in result.one("error")["detail"]
