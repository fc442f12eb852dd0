from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import redis

from tests.service.farm import WORKER_TOKEN, Farm, bearer, eventually

SIGNATURE = "5" * 64
TRACE = json.dumps([[["GetSBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], []]], []])


def found(signature: str = SIGNATURE, **changes: Any) -> dict[str, Any]:
    """What a worker measured of one kernel."""
    return {
        "abi": "x86_64",
        "signature": signature,
        "kernel": "fused_conv2d_add",
        "calls": 2,
        "trace": TRACE,
        "before": {"median_us": 100.0, "spread_us": 2.0},
        "after": {"median_us": 80.0, "spread_us": 1.0},
        "rounds": 21,
        "tried": 9,
        "duration_us": 4_000_000,
        "machine": "a processor, 2 cores",
        **changes,
    }


def ask(farm: Farm, **request: Any) -> httpx.Response:
    request.setdefault("model_id", farm.seed_model())
    return farm.client.post("/v1/tunings", json=request)


def claim(farm: Farm, tuning_id: str) -> dict[str, Any]:
    path = f"/internal/v1/tunings/{tuning_id}/claim"
    body = {"worker_name": "w1"}
    return farm.ok(farm.client.post(path, json=body, headers=bearer(WORKER_TOKEN)))


def call(farm: Farm, spec: dict[str, Any], name: str, **body: Any) -> httpx.Response:
    path = f"/internal/v1/tunings/{spec['tuning_id']}/{name}"
    body = {"attempt": spec["attempt"], **body}
    return farm.client.post(path, json=body, headers=bearer(spec["job_token"]))


def tell(farm: Farm, spec: dict[str, Any], tuned: dict[str, Any]) -> httpx.Response:
    event = {"stage": "tune", "done": 1, "total": 3, "tuned": tuned}
    return call(farm, spec, "events", events=[event])


def outcome(**changes: Any) -> dict[str, Any]:
    return {
        "abi": "x86_64",
        "machine": "a processor, 2 cores",
        "kernel_count": 3,
        "known_count": 1,
        "tuned_count": 1,
        "before": {"median_us": 900.0, "spread_us": 9.0},
        "after": {"median_us": 880.0, "spread_us": 9.0},
        "stage_durations_us": {"tune": 5},
        "child_duration_us": 9,
        **changes,
    }


def tuned(farm: Farm, *kernels: dict[str, Any]) -> str:
    """A tuning that has succeeded and found this."""
    spec = claim(farm, farm.ok(ask(farm))["id"])
    for kernel in kernels:
        assert tell(farm, spec, kernel).status_code == 204
    assert call(farm, spec, "complete", **outcome()).status_code == 204
    return str(spec["tuning_id"])


def built(farm: Farm, spec: dict[str, Any], *signatures: str) -> dict[str, Any]:
    """An outcome of a compilation with these kernels, which uses every record it was given."""
    body = farm.outcome(spec)
    body["kernels"] = {"x86_64": list(signatures)}
    used = [one for one in spec["tuned"] if one["signature"] in signatures]
    for artifact in body["artifacts"]:
        artifact["manifest"]["tuned_kernels"] = [
            {"record_id": one["record_id"], "kernel": "k", "before_us": 100, "after_us": 80}
            for one in used
        ]
    return body


def test_tuning_goes_from_queue_to_records(farm: Farm) -> None:
    made = farm.ok(ask(farm, options={"time_budget_s": 60}))
    assert (made["status"], made["records"]) == ("queued", [])
    with redis.Redis.from_url(farm.settings.redis_url) as queue:
        eventually(lambda: any(made["id"].encode() in t for t in queue.lrange("compile", 0, -1)))
    spec = claim(farm, made["id"])
    assert (spec["time_budget_s"], spec["known"], spec["tuned"]) == (60.0, [], [])
    assert tell(farm, spec, found()).status_code == 204
    running = farm.get(f"/v1/tunings/{made['id']}")
    [record] = running["records"]
    assert (running["stage"], record["is_kept"], record["tried"]) == ("tune", True, 9)
    assert (record["before"]["median_us"], record["after"]["spread_us"]) == (100.0, 1.0)
    for _ in range(2):  # a worker that missed the answer says it again
        assert call(farm, spec, "complete", **outcome()).status_code == 204
    done = farm.get(f"/v1/tunings/{made['id']}")
    assert (done["status"], done["kernel_count"], done["known_count"]) == ("succeeded", 3, 1)
    assert (done["before"]["median_us"], done["after"]["median_us"]) == (900.0, 880.0)
    assert [item["id"] for item in farm.get("/v1/tunings")["items"]] == [made["id"]]


def test_same_request_joins_while_it_runs_and_goes_on_afterwards(farm: Farm) -> None:
    model = farm.seed_model()
    made = farm.ok(ask(farm, model_id=model))
    joined = ask(farm, model_id=model)
    assert (joined.status_code, joined.json()["id"]) == (200, made["id"])
    spec = claim(farm, made["id"])
    tell(farm, spec, found())
    call(farm, spec, "complete", **outcome())
    another = ask(farm, model_id=model)
    assert (another.status_code, another.json()["id"] != made["id"]) == (201, True)
    assert claim(farm, another.json()["id"])["known"] == [{"abi": "x86_64", "signature": SIGNATURE}]


def test_an_attempt_that_dies_loses_nothing_it_has_measured(farm: Farm) -> None:
    made = farm.ok(ask(farm, options={"time_budget_s": 60}))
    first = claim(farm, made["id"])
    tell(farm, first, found())
    tell(farm, first, found("6" * 64, trace=None, after=None))
    problem = {
        "code": "infra.worker_lost",
        "title": "t",
        "status": 503,
        "detail": "killed",
        "error_class": "infra",
    }
    assert call(farm, first, "fail", problem=problem).status_code == 204
    second = claim(farm, made["id"])
    assert second["attempt"] == 2
    assert second["time_budget_s"] == 52.0  # of 60, less the 4 of each record
    assert second["known"] == [{"abi": "x86_64", "signature": SIGNATURE}]
    assert [one["trace"] for one in second["tuned"]] == [TRACE]
    assert len(farm.get(f"/v1/tunings/{made['id']}")["records"]) == 2


def test_a_cancelled_tuning_keeps_its_records(farm: Farm) -> None:
    spec = claim(farm, farm.ok(ask(farm))["id"])
    tell(farm, spec, found())
    cancelled = farm.ok(farm.client.post(f"/v1/tunings/{spec['tuning_id']}/cancel"))
    assert (cancelled["status"], cancelled["error"]["code"]) == ("failed", "job.cancelled")
    assert [record["is_kept"] for record in cancelled["records"]] == [True]
    assert tell(farm, spec, found("6" * 64)).json()["code"] == "request.fenced"


def test_kernels_without_a_faster_schedule_are_tried_again_but_not_for_ever(farm: Farm) -> None:
    nothing = found(trace=None, after=None, tried=40)
    tuned(farm, nothing)
    spec = claim(farm, farm.ok(ask(farm))["id"])
    assert spec["known"] == []
    tell(farm, spec, nothing)
    call(farm, spec, "complete", **outcome())
    spec = claim(farm, farm.ok(ask(farm))["id"])
    assert spec["known"] == [{"abi": "x86_64", "signature": SIGNATURE}]
    assert farm.claim(farm.compile()["id"])["tuned"] == []


def test_a_faster_schedule_stays(farm: Farm) -> None:
    [first] = farm.get(f"/v1/tunings/{tuned(farm, found())}")["records"]
    later = tuned(farm, found(trace=None, after=None), found(calls=5))
    assert farm.get(f"/v1/tunings/{later}")["records"] == []
    [given] = farm.claim(farm.compile()["id"])["tuned"]
    assert given["record_id"] == first["id"]


def test_compilations_get_the_records_of_their_abis(farm: Farm) -> None:
    tuned(farm, found(), found("6" * 64, abi="arm64-v8a"), found("7" * 64, trace=None, after=None))
    spec = farm.claim(farm.compile(abis=["x86_64"])["id"])
    [given] = spec["tuned"]
    assert (given["signature"], given["trace"]) == (SIGNATURE, TRACE)
    assert (given["before_us"], given["after_us"]) == (100.0, 80.0)


def test_a_repeated_request_is_built_again_when_its_kernels_have_been_tuned(farm: Farm) -> None:
    request = {"model_id": farm.seed_model(), "options": {}}

    def ask_again() -> dict[str, Any]:
        return farm.compile(**request)

    def complete(made: dict[str, Any]) -> dict[str, Any]:
        spec = farm.claim(made["id"])
        assert farm.job_call(spec, "complete", built(farm, spec, SIGNATURE)).status_code == 204
        return spec

    first = ask_again()
    complete(first)
    assert (ask_again()["id"], ask_again()["cached"]) == (first["id"], True)

    tuned(farm, found("6" * 64))  # of another model's kernel
    assert ask_again()["id"] == first["id"]

    tuned(farm, found())
    second = ask_again()
    assert (second["id"] != first["id"], second["cached"]) == (True, False)
    assert {one["signature"] for one in complete(second)["tuned"]} == {SIGNATURE, "6" * 64}
    again = ask_again()
    assert (again["id"], again["cached"]) == (second["id"], True)


def test_a_first_build_with_records_is_found_again(farm: Farm) -> None:
    tuned(farm, found())
    request = {"model_id": farm.seed_model(), "options": {}}
    made = farm.compile(**request)
    spec = farm.claim(made["id"])
    assert farm.job_call(spec, "complete", built(farm, spec, SIGNATURE)).status_code == 204
    again = farm.compile(**request)
    assert (again["id"], again["cached"]) == (made["id"], True)
    artifact = farm.get(f"/v1/artifacts/{again['artifacts'][0]['id']}")
    [applied] = artifact["manifest"]["tuned_kernels"]
    assert (applied["before_us"], applied["after_us"]) == (100.0, 80.0)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        ("no JSON", "not the JSON of a trace"),
        ("[]", "not the JSON of a trace"),
        ('[[["Split"]], []]', "not the JSON of a trace"),
        ('[[["UnsafeSetDType", [], [0, "float16"], []]], []]', "UnsafeSetDType"),
        ('[[["SetScope", ["b0"], [0, "global"], []]], []]', "SetScope"),
        ('[[["Annotate", ["b0", 1], ["pragma_import_llvm"], []]], []]', "pragma_import_llvm"),
        ('[[["Annotate", ["b0", 1], [], []]], []]', "not the JSON of a trace"),
    ],
)
def test_traces_have_harmless_steps_only(farm: Farm, trace: str, words: str) -> None:
    spec = claim(farm, farm.ok(ask(farm))["id"])
    answer = tell(farm, spec, found(trace=trace))
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert farm.get(f"/v1/tunings/{spec['tuning_id']}")["records"] == []


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"model_id": "mod_none"}, "request.not_found", "mod_none"),
        ({"options": {"time_budget_s": 5}}, "tune.bad_option", "time_budget_s"),
        ({"options": {"time_budget_s": 9999}}, "tune.bad_option", "time_budget_s"),
        ({"options": {"target": "a phone"}}, "tune.bad_option", "target"),
        ({"surprise": 1}, "request.invalid", "surprise"),
    ],
)
def test_bad_requests_have_a_code_and_a_sentence(
    lite_farm: Farm, body: dict[str, Any], code: str, words: str
) -> None:
    problem = ask(lite_farm, **body).json()
    assert (problem["code"], problem["error_class"]) == (code, "user")
    assert words in problem["detail"]
