from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.service.farm import AGENT_TOKEN, Farm, bearer, device, eventually, measurement

Serve = Callable[..., Farm]


def fault(code: str, error_class: str) -> dict[str, Any]:
    return {
        "code": code,
        "title": "t",
        "status": 502,
        "detail": "gone",
        "error_class": error_class,
    }


def take(farm: Farm, *serials: str, agent: str = "bench") -> dict[str, Any]:
    lease = farm.lease(*serials, agent=agent)
    assert lease is not None
    return lease


def run(farm: Farm, lease: dict[str, Any]) -> dict[str, Any]:
    return farm.get(f"/v1/runs/{lease['run_id']}")


def test_run_is_leased_measured_and_shown(farm: Farm) -> None:
    phone = farm.attach(device("p1"))[0]
    built = farm.build(levels=[1], run_on="any")
    lease = take(farm, "p1")
    assert (lease["serial"], lease["fence"], lease["abi"]) == ("p1", 1, "x86_64")
    assert lease["manifest"]["parts"][0]["path"] == "model.so"
    assert lease["evaluation"]["sample_count"] == 2
    assert farm.get(f"/v1/devices/{phone['id']}")["state"] == "busy"
    blob = lease["manifest"]["parts"][1]["sha256"]
    headers = bearer(lease["lease_token"])
    assert farm.client.get(f"/internal/v1/blobs/{blob}", headers=headers).content == b"w" * 4097
    assert farm.run_call(lease, "heartbeat").status_code == 204
    for _ in range(2):  # an agent that missed the answer says it again
        assert farm.run_call(lease, "report", measurement=measurement()).status_code == 204
    done = run(farm, lease)
    assert (done["status"], done["attempt"]) == ("succeeded", 1)
    assert done["device"]["name"] == "phone-p1"
    assert done["measurement"]["latency"]["median_us"] == 10.0
    assert farm.get(f"/v1/devices/{phone['id']}")["state"] == "online"
    listed = farm.get(f"/v1/runs?compilation_id={built['id']}")["items"]
    assert [item["id"] for item in listed] == [lease["run_id"]]


def test_highest_level_that_fits_comes_first(farm: Farm) -> None:
    farm.attach(device("p1", level=4))
    farm.build(levels=[1, 3, 4, 7], run_on="any")
    levels = []
    while lease := farm.lease("p1"):
        levels.append(lease["manifest"]["feature_level"])
        farm.run_call(lease, "report", measurement=measurement())
    assert levels == [4, 3, 1]


def test_all_means_every_attached_device_that_can(farm: Farm) -> None:
    farm.attach(device("p1", 4), device("p7", 7), device("arm", 7, abis=["arm64-v8a"]))
    built = farm.build(levels=[4, 7], run_on="all")
    found = [(item["feature_level"], item["device"]["name"]) for item in built["runs"]]
    assert sorted(found) == [(4, "phone-p1"), (4, "phone-p7"), (7, "phone-p7")]


def test_listed_device_that_cannot_is_skipped_with_the_reason(farm: Farm) -> None:
    phone = farm.attach(device("p1", 4))[0]
    built = farm.build(levels=[1, 7], run_on=[phone["id"]])
    by_level = {item["feature_level"]: item for item in built["runs"]}
    assert by_level[1]["status"] == "queued"
    assert by_level[7]["status"] == "skipped"
    assert by_level[7]["error"]["code"] == "run.no_device"
    assert "feature level 4; 7 is needed" in by_level[7]["error"]["detail"]


def test_run_by_hand_is_checked_against_its_device(farm: Farm) -> None:
    phone = farm.attach(device("p1", 4))[0]
    artifacts = {
        item["feature_level"]: item["id"] for item in farm.build(levels=[1, 7])["artifacts"]
    }
    body = {"artifact_id": artifacts[1], "device_id": phone["id"]}
    assert farm.client.post("/v1/runs", json=body).status_code == 201
    refused = farm.client.post("/v1/runs", json={**body, "artifact_id": artifacts[7]})
    assert (refused.status_code, refused.json()["code"]) == (422, "run.no_device")
    anywhere = farm.client.post("/v1/runs", json={"artifact_id": artifacts[7]})
    assert (anywhere.status_code, anywhere.json()["device"]) == (201, None)


def test_run_nobody_can_do_is_skipped(start: Serve, database_url: str) -> None:
    farm = start(database_url=database_url, no_device_after_s=0.2)
    farm.attach(device("p1", level=1), device("p2", 8, reason_unusable="broken"))
    built = farm.build(levels=[7], run_on="any")
    run_id = built["runs"][0]["id"]
    skipped = eventually(lambda: (r := farm.get(f"/v1/runs/{run_id}"))["finished_at"] and r)
    assert (skipped["status"], skipped["error"]["code"]) == ("skipped", "run.no_device")
    assert "feature level 7" in skipped["error"]["detail"]


def test_run_waits_for_a_device_that_is_busy(start: Serve) -> None:
    farm = start(no_device_after_s=0.1)
    farm.attach(device("p1"))
    farm.build(levels=[1, 4], run_on="any")
    lease = take(farm, "p1")
    assert farm.lease("p1") is None  # it has a run in hand
    farm.run_call(lease, "report", measurement=measurement())
    assert take(farm, "p1")["manifest"]["feature_level"] == 1


def test_each_run_goes_to_one_agent_only(farm: Farm) -> None:
    agents = [f"agent{number}" for number in range(4)]
    for agent in agents:
        farm.attach(device("p1"), agent=agent)
    farm.build(levels=[1, 2, 3], run_on="any")
    with ThreadPoolExecutor(len(agents)) as pool:
        leases = list(pool.map(lambda agent: farm.lease("p1", agent=agent), agents))
    taken = [lease["run_id"] for lease in leases if lease]
    # Losing a race means to ask again, as every agent does.
    taken += [lease["run_id"] for agent in agents if (lease := farm.lease("p1", agent=agent))]
    assert len(taken) == len(set(taken)) == 3


def test_silent_agent_is_fenced_and_the_run_goes_on_elsewhere(
    start: Serve, database_url: str
) -> None:
    farm = start(database_url=database_url, run_lease_s=0.3)
    farm.attach(device("p1"), agent="dead")
    farm.build(levels=[1], run_on="any")
    old = take(farm, "p1", agent="dead")
    eventually(lambda: run(farm, old)["status"] == "queued")
    answer = farm.run_call(old, "heartbeat")
    assert (answer.status_code, answer.json()["code"]) == (409, "request.fenced")
    farm.attach(device("p2"), agent="alive")
    new = take(farm, "p2", agent="alive")
    assert (new["run_id"], new["fence"] > old["fence"]) == (old["run_id"], True)
    late = farm.run_call(old, "report", measurement=measurement())
    assert late.json()["code"] == "request.fenced"
    farm.run_call(new, "report", measurement=measurement())
    done = run(farm, new)
    assert (done["status"], done["attempt"]) == ("succeeded", 2)
    assert done["device"]["agent_name"] == "alive"


def test_device_fault_moves_the_run_to_another_device(farm: Farm) -> None:
    farm.attach(device("p1"), device("p2"))
    farm.build(levels=[1], run_on="any")
    lease = take(farm, "p1")
    problem = fault("run.device_lost", "device")
    assert farm.run_call(lease, "report", problem=problem).status_code == 204
    assert farm.lease("p1") is None
    assert take(farm, "p2", "p1")["serial"] == "p2"


def test_device_faults_end_after_three_attempts(farm: Farm) -> None:
    farm.attach(device("p1"))
    farm.build(levels=[1], run_on="any")
    for _ in range(3):
        lease = take(farm, "p1")
        farm.run_call(lease, "report", problem=fault("run.timeout", "device"))
    failed = run(farm, lease)
    assert (failed["status"], failed["attempt"]) == ("failed", 3)
    assert failed["error"]["code"] == "run.timeout"


def test_bug_is_never_tried_again(farm: Farm) -> None:
    farm.attach(device("p1"))
    farm.build(levels=[1], run_on="any")
    lease = take(farm, "p1")
    farm.run_call(lease, "report", problem=fault("run.bad_package", "bug"), log_tail="trace")
    failed = run(farm, lease)
    assert (failed["status"], failed["log_tail"]) == ("failed", "trace")


def test_empty_report_is_refused(farm: Farm) -> None:
    farm.attach(device("p1"))
    farm.build(levels=[1], run_on="any")
    lease = take(farm, "p1")
    answer = farm.run_call(lease, "report")
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")


def test_lease_call_waits_for_work_without_blocking_others(start: Serve) -> None:
    farm = start(long_poll_s=20.0)
    farm.attach(device("p1"))
    compilation = farm.compile(levels=[1], run_on="any")
    found: list[dict[str, Any]] = []
    waiter = threading.Thread(target=lambda: found.append(take(farm, "p1")))
    waiter.start()
    spec = farm.claim(compilation["id"])
    assert farm.job_call(spec, "complete", farm.outcome(spec)).status_code == 204
    waiter.join(timeout=10)
    assert found
    assert found[0]["serial"] == "p1"


def test_lease_needs_the_agents_token(lite_farm: Farm) -> None:
    body = {"agent_name": "a", "serials": ["p"]}
    assert lite_farm.client.post("/internal/v1/leases", json=body).status_code == 401
    headers = bearer(AGENT_TOKEN)
    answer = lite_farm.client.post("/internal/v1/leases", json=body, headers=headers)
    assert answer.status_code == 204
