from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.service.farm import Farm, device, eventually, measurement

Serve = Callable[..., Farm]
CLASSES = {"run.timeout": "device", "infra.storage": "infra", "run.failed": "bug"}


def finish_runs(farm: Farm, serial: str, *codes: str) -> None:
    """Be the agent: take runs and report these errors; an empty one is a success."""
    for code in codes:
        lease = farm.lease(serial)
        assert lease is not None
        word: dict[str, Any] = {"measurement": measurement()}
        if code:
            known = {"code": code, "error_class": CLASSES[code]}
            word = {"problem": {**known, "title": "t", "status": 500, "detail": "d"}}
        assert farm.run_call(lease, "report", **word).status_code == 204


def state(farm: Farm, phone: dict[str, Any]) -> str:
    return str(farm.get(f"/v1/devices/{phone['id']}")["state"])


def faulty(farm: Farm) -> dict[str, Any]:
    """A device on which one run has failed with all its attempts, and then another."""
    phone = farm.attach(device("p1"))[0]
    farm.build(levels=[1, 2], run_on=[phone["id"]])
    finish_runs(farm, "p1", *3 * ["run.timeout"])
    assert state(farm, phone) == "online"
    finish_runs(farm, "p1", "run.timeout")
    return phone


def test_device_that_fails_different_runs_gets_no_more(farm: Farm) -> None:
    phone = faulty(farm)
    shown = farm.get(f"/v1/devices/{phone['id']}")
    assert shown["state"] == "quarantined"
    assert shown["quarantined_at"] is not None
    assert farm.lease("p1") is None
    built = farm.build(levels=[1], run_on="all")
    assert built["runs"][0]["device"] is None


def test_reports_and_absence_do_not_end_a_quarantine_early(farm: Farm) -> None:
    phone = faulty(farm)
    assert farm.attach(device("p1"))[0]["state"] == "quarantined"
    farm.attach()
    assert state(farm, phone) == "offline"
    assert farm.attach(device("p1"))[0]["state"] == "quarantined"


def test_one_run_alone_does_not_condemn_a_device(farm: Farm) -> None:
    """It may be the artifact that crashes any phone."""
    phone = farm.attach(device("p1"))[0]
    farm.build(levels=[1], run_on=[phone["id"]])
    finish_runs(farm, "p1", *3 * ["run.timeout"])
    assert state(farm, phone) == "online"


def test_one_run_does_when_its_artifact_runs_elsewhere(farm: Farm) -> None:
    phone, other = farm.attach(device("p1"), device("p2"))
    farm.build(levels=[1], run_on="all")
    finish_runs(farm, "p2", "")
    finish_runs(farm, "p1", *3 * ["run.timeout"])
    assert (state(farm, phone), state(farm, other)) == ("quarantined", "online")


def test_only_faults_in_a_row_count(farm: Farm) -> None:
    phone = farm.attach(device("p1"))[0]
    farm.build(levels=[1, 2, 3, 4], run_on=[phone["id"]])
    finish_runs(farm, "p1", "run.timeout", "run.timeout", "", "run.timeout", "run.timeout")
    assert state(farm, phone) == "online"
    finish_runs(farm, "p1", "run.failed", "run.timeout")
    assert state(farm, phone) == "online"


def test_infrastructure_errors_say_nothing_of_the_device(farm: Farm) -> None:
    phone = farm.attach(device("p1"))[0]
    farm.build(levels=[1, 2, 3], run_on=[phone["id"]])
    finish_runs(farm, "p1", "run.timeout", "run.timeout", "infra.storage")
    assert state(farm, phone) == "online"
    finish_runs(farm, "p1", "run.timeout")
    assert state(farm, phone) == "quarantined"


def test_release_by_hand_gives_a_clean_slate(farm: Farm) -> None:
    phone = faulty(farm)
    released = farm.ok(farm.client.post(f"/v1/devices/{phone['id']}/release"))
    assert (released["state"], released["quarantined_at"]) == ("online", None)
    finish_runs(farm, "p1", "run.timeout")
    assert state(farm, phone) == "online"


def test_release_needs_a_device_in_quarantine(farm: Farm) -> None:
    phone = farm.attach(device("p1"))[0]
    for device_id, status, code in (
        (phone["id"], 409, "request.conflict"),
        ("dev_none", 404, "request.not_found"),
    ):
        answer = farm.client.post(f"/v1/devices/{device_id}/release")
        assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_usable_device_is_released_by_a_report_after_its_rest(
    start: Serve, database_url: str
) -> None:
    farm = start(database_url=database_url, quarantine_s=0.3)
    phone = faulty(farm)
    assert state(farm, phone) == "quarantined"
    eventually(lambda: farm.attach(device("p1"))[0]["state"] == "online")
    assert farm.get(f"/v1/devices/{phone['id']}")["quarantined_at"] is None


def test_unusable_device_stays_in_quarantine(start: Serve, database_url: str) -> None:
    farm = start(database_url=database_url, quarantine_s=0.0)
    faulty(farm)
    broken = farm.attach(device("p1", reason_unusable="no qemu"))[0]
    assert (broken["state"], broken["quarantined_at"] is None) == ("maintenance", False)
    assert farm.attach(device("p1"))[0]["state"] == "online"


def test_run_that_waits_for_a_quarantined_device_is_skipped_with_the_reason(start: Serve) -> None:
    farm = start(no_device_after_s=0.2)
    phone = faulty(farm)
    built = farm.build(levels=[1], run_on=[phone["id"]])
    path = f"/v1/runs/{built['runs'][0]['id']}"
    skipped = eventually(lambda: (run := farm.get(path))["finished_at"] and run)
    assert skipped["error"]["code"] == "run.no_device"
    assert "phone-p1 is in quarantine" in skipped["error"]["detail"]
