from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.service.farm import WORKER_TOKEN, Farm, bearer, eventually, follow

Serve = Callable[..., Farm]

INFRA = {
    "code": "infra.storage",
    "title": "t",
    "status": 503,
    "detail": "disk",
    "error_class": "infra",
}


def wait_for_status(farm: Farm, compilation_id: str, status: str, attempt: int) -> dict[str, Any]:
    for event in follow(farm, compilation_id):
        data = event["data"]
        if event["event"] == "status" and (data["status"], data["attempt"]) == (status, attempt):
            return data
    raise AssertionError(f"{compilation_id} never became {status}")


def refused(farm: Farm, spec: dict[str, Any], call: str, body: dict[str, Any]) -> str:
    answer = farm.job_call(spec, call, body)
    assert answer.status_code >= 400, answer.text
    return str(answer.json()["code"])


def test_claim_needs_the_workers_token(farm: Farm) -> None:
    path = f"/internal/v1/compilations/{farm.compile()['id']}/claim"
    body = {"worker_name": "w"}
    assert farm.client.post(path, json=body).status_code == 401
    assert farm.client.post(path, json=body, headers=bearer("guess")).status_code == 401


def test_job_goes_from_queue_to_artifacts(farm: Farm) -> None:
    made = farm.compile()
    spec = farm.claim(made["id"])
    assert (spec["attempt"], spec["model_name"]) == (1, "digits")
    event = {"stage": "build", "feature_level": 1, "done": 3, "total": 9, "duration_us": 12}
    assert farm.job_call(spec, "events", {"events": [event]}).status_code == 204
    running = farm.get(f"/v1/compilations/{made['id']}")
    assert (running["status"], running["stage"]) == ("running", "build")
    assert (running["done"], running["total"]) == (3, 9)
    outcome = farm.outcome(spec)
    for _ in range(2):  # a worker that missed the answer says it again
        assert farm.job_call(spec, "complete", outcome).status_code == 204
    done = farm.get(f"/v1/compilations/{made['id']}")
    assert done["status"] == "succeeded"
    assert [item["feature_level"] for item in done["artifacts"]] == [1, 4]
    assert done["stage_durations_us"] == {"ingest": 5}
    assert done["evaluation"]["sample_count"] == 2


def test_live_lease_and_final_state_refuse_a_claim(farm: Farm) -> None:
    spec = farm.claim(farm.compile()["id"])
    path = f"/internal/v1/compilations/{spec['compilation_id']}/claim"
    for _ in range(2):
        again = farm.client.post(path, json={"worker_name": "w1"}, headers=bearer(WORKER_TOKEN))
        assert (again.status_code, again.json()["code"]) == (409, "request.conflict")
        farm.job_call(spec, "complete", farm.outcome(spec))


def test_job_token_opens_its_own_job_only(farm: Farm) -> None:
    spec, other = farm.claim(farm.compile()["id"]), farm.claim(farm.compile()["id"])
    stolen = {**other, "job_token": spec["job_token"]}
    assert refused(farm, stolen, "events", {}) == "request.forbidden"
    assert refused(farm, {**spec, "attempt": 2}, "events", {}) == "request.forbidden"
    assert refused(farm, {**spec, "job_token": spec["job_token"] + "x"}, "events", {}) == (
        "request.unauthorized"
    )
    path = f"/internal/v1/runs/{spec['compilation_id']}/heartbeat"
    answer = farm.client.post(path, json={"fence": 1}, headers=bearer(spec["job_token"]))
    assert answer.json()["code"] == "request.forbidden"


def test_infra_failures_are_tried_three_times(farm: Farm) -> None:
    made = farm.compile()
    for attempt in (1, 2, 3):
        spec = farm.claim(made["id"])
        assert spec["attempt"] == attempt
        for _ in range(2):
            assert farm.job_call(spec, "fail", {"problem": INFRA}).status_code == 204
    failed = farm.get(f"/v1/compilations/{made['id']}")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "infra.storage")


def test_silent_worker_loses_the_job_and_is_fenced(start: Serve, database_url: str) -> None:
    farm = start(database_url=database_url, job_lease_s=0.2)
    made = farm.compile()
    lost = farm.claim(made["id"])
    outcome = farm.outcome(lost)
    wait_for_status(farm, made["id"], "queued", 1)
    assert refused(farm, lost, "events", {}) == "request.fenced"
    farm.claim(made["id"])
    assert refused(farm, lost, "complete", outcome) == "request.fenced"
    wait_for_status(farm, made["id"], "queued", 2)
    farm.claim(made["id"])
    error = wait_for_status(farm, made["id"], "failed", 3)["error"]
    assert error["code"] == "infra.worker_lost"
    assert error["error_class"] == "infra"


def change_part(outcome: dict[str, Any], **change: Any) -> None:
    outcome["artifacts"][0]["manifest"]["parts"][0].update(change)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda o: o["artifacts"].pop(), "not the targets"),
        (lambda o: o["artifacts"].append(o["artifacts"][0]), "not the targets"),
        (lambda o: o["evaluation"].update(inputs_sha256="0" * 64), "not stored"),
        (lambda o: change_part(o, sha256="1" * 64), "not stored"),
        (lambda o: change_part(o, size_bytes=1), "is of"),
        (lambda o: change_part(o, path="../model.so"), "no name for a part"),
        (lambda o: change_part(o, path="manifest.json"), "no name for a part"),
        (lambda o: change_part(o, path="weights.bin"), "twice"),
        (lambda o: o["artifacts"][0]["manifest"].update(model_sha256="2" * 64), "another model"),
        (lambda o: o["artifacts"][0]["manifest"].update(feature_level=8), "another target"),
    ],
)
def test_outcome_that_does_not_fit_is_refused(
    lite_farm: Farm, spoil: Callable[[dict[str, Any]], Any], words: str
) -> None:
    spec = lite_farm.claim(lite_farm.compile()["id"])
    outcome = lite_farm.outcome(spec)
    spoil(outcome)
    answer = lite_farm.job_call(spec, "complete", outcome)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert words in answer.json()["detail"]
    assert lite_farm.get(f"/v1/compilations/{spec['compilation_id']}")["status"] == "running"


def test_unclaimed_task_is_sent_again_and_claimed_once(start: Serve, database_url: str) -> None:
    farm = start(database_url=database_url, resend_after_s=0.1)
    made = farm.compile()
    with redis.Redis.from_url(farm.settings.redis_url) as queue:
        eventually(
            lambda: sum(made["id"].encode() in t for t in queue.lrange("compile", 0, -1)) > 1
        )
    farm.claim(made["id"])
    path = f"/internal/v1/compilations/{made['id']}/claim"
    again = farm.client.post(path, json={"worker_name": "w2"}, headers=bearer(WORKER_TOKEN))
    assert again.status_code == 409
