"""Tunings on devices: the bench that a worker builds is a run that an agent leases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.service.farm import Farm, device, eventually
from tests.service.resources.test_runs import fault
from tests.service.resources.test_tunings import TRACE, ask, call, claim, outcome

FIRST, SECOND = "5" * 64, "6" * 64

Serve = Callable[..., Farm]
Json = dict[str, Any]


def real(serial: str, **changes: Any) -> Json:
    return device(serial, simulated=False, **changes)


def asked(farm: Farm, phone: Json) -> Json:
    """A claimed tuning on a device."""
    return claim(farm, farm.ok(ask(farm, options={"target": phone["id"]}))["id"])


def bench(farm: Farm, spec: Json, *signatures: str) -> Json:
    """A bench of kernels with two candidates each, whose libraries are uploaded."""
    kernels = []
    for number, signature in enumerate(signatures):
        content = f"library of {signature}".encode()
        library = {
            "path": f"kernel_{number}.so",
            "sha256": farm.put_blob(spec["job_token"], content),
            "size_bytes": len(content),
        }
        kernel = {
            "signature": signature,
            "kernel": f"conv2d_{number}",
            "calls": 2,
            "tensors": [{"shape": [1, 8], "dtype": "float32"}],
            "library": library,
            "candidates": [TRACE, TRACE.replace("b0", "b1")],
        }
        kernels.append(kernel)
    return {"abi": "x86_64", "kernels": kernels, "time_limit_ms": 1000}


def hand_over(farm: Farm, spec: Json, *signatures: str) -> Json:
    """The worker is done with its part; gives the body it said that with."""
    built = outcome(bench=bench(farm, spec, *signatures), machine="", before=None, after=None)
    assert call(farm, spec, "complete", **built).status_code == 204
    return built


def take(farm: Farm, serial: str) -> Json:
    lease = farm.lease(serial, benches=True)
    assert lease is not None
    return lease


def measured(signature: str, best: int | None = 1) -> Json:
    return {
        "signature": signature,
        "before": {"median_us": 100.0, "spread_us": 2.0},
        "after": {"median_us": 80.0, "spread_us": 1.0},
        "best": best,
        "rounds": 21,
        "tried": 2,
        "duration_us": 5000,
    }


def shown(farm: Farm, spec: Json) -> Json:
    return farm.get(f"/v1/tunings/{spec['tuning_id']}")


def test_a_bench_is_leased_and_its_records_are_used(farm: Farm) -> None:
    [phone] = farm.attach(real("p1"))
    spec = asked(farm, phone)
    assert spec["bench_abi"] == "x86_64"
    built = hand_over(farm, spec, FIRST, SECOND)
    assert call(farm, spec, "complete", **built).status_code == 204  # the answer was missed
    waiting = shown(farm, spec)
    assert (waiting["status"], waiting["stage"]) == ("running", "bench")
    assert waiting["device"] == {"id": phone["id"], "name": "phone-p1", "simulated": False}
    assert call(farm, spec, "events", events=[]).json()["code"] == "request.fenced"
    assert farm.lease("p1") is None  # an agent that knows no benches gets none
    lease = take(farm, "p1")
    assert [kernel["signature"] for kernel in lease["bench"]["kernels"]] == [FIRST, SECOND]
    assert farm.get(f"/v1/devices/{phone['id']}")["state"] == "busy"
    for _ in range(2):
        told = farm.run_call(lease, "kernels", kernels=[measured(FIRST)])
        assert told.status_code == 204
    assert len(shown(farm, spec)["records"]) == 1
    farm.run_call(lease, "kernels", kernels=[measured(SECOND, best=None)])
    for _ in range(2):
        assert farm.run_call(lease, "report", bench_done=True).status_code == 204
    done = shown(farm, spec)
    assert (done["status"], done["done"], done["machine"]) == (
        "succeeded", done["total"], "phone-p1 (test phone)",
    )  # fmt: skip
    assert [(one["is_kept"], one["tried"], one["machine"]) for one in done["records"]] == [
        (True, 2, "phone-p1 (test phone)"),
        (False, 2, "phone-p1 (test phone)"),
    ]
    assert farm.get(f"/v1/devices/{phone['id']}")["state"] == "online"
    assert farm.get("/v1/runs")["items"] == []
    compiled = farm.claim(farm.compile(levels=[1], abis=["x86_64"])["id"])
    assert [one["trace"] for one in compiled["tuned"]] == [TRACE.replace("b0", "b1")]


def test_what_a_simulated_device_finds_is_shown_and_used_by_nothing(farm: Farm) -> None:
    [phone] = farm.attach(device("v1"))
    spec = asked(farm, phone)
    hand_over(farm, spec, FIRST)
    lease = take(farm, "v1")
    farm.run_call(lease, "kernels", kernels=[measured(FIRST)])
    farm.run_call(lease, "report", bench_done=True)
    done = shown(farm, spec)
    [record] = done["records"]
    assert (done["status"], record["simulated"], record["is_kept"]) == ("succeeded", True, False)
    assert farm.claim(farm.compile(levels=[1], abis=["x86_64"])["id"])["tuned"] == []
    assert claim(farm, farm.ok(ask(farm))["id"])["known"] == []


def test_a_silent_agent_loses_no_kernel_and_measures_none_twice(
    start: Serve, database_url: str
) -> None:
    farm = start(database_url=database_url, run_lease_s=0.3)
    spec = asked(farm, farm.attach(real("p1"))[0])
    hand_over(farm, spec, FIRST, SECOND)
    lost = take(farm, "p1")
    farm.run_call(lost, "kernels", kernels=[measured(FIRST)])
    lease = eventually(lambda: farm.lease("p1", benches=True))
    assert [kernel["signature"] for kernel in lease["bench"]["kernels"]] == [SECOND]
    stale = farm.run_call(lost, "kernels", kernels=[measured(SECOND)])
    assert stale.json()["code"] == "request.fenced"
    farm.run_call(lease, "kernels", kernels=[measured(SECOND)])
    farm.run_call(lease, "report", bench_done=True)
    done = shown(farm, spec)
    assert (done["status"], len(done["records"])) == ("succeeded", 2)


def test_cancelling_the_tuning_ends_its_run(farm: Farm) -> None:
    [phone] = farm.attach(real("p1"))
    spec = asked(farm, phone)
    hand_over(farm, spec, FIRST)
    lease = take(farm, "p1")
    path = f"/v1/tunings/{spec['tuning_id']}/cancel"
    for _ in range(2):
        assert farm.ok(farm.client.post(path))["error"]["code"] == "job.cancelled"
    assert farm.run_call(lease, "heartbeat").json()["code"] == "request.fenced"
    assert farm.get(f"/v1/devices/{phone['id']}")["state"] == "online"
    assert farm.lease("p1", benches=True) is None


def test_the_end_of_the_run_is_the_end_of_the_tuning(farm: Farm) -> None:
    spec = asked(farm, farm.attach(real("p1"))[0])
    hand_over(farm, spec, FIRST)
    lease = take(farm, "p1")
    farm.run_call(lease, "report", problem=fault("run.failed", "bug"), log_tail="no such library")
    failed = shown(farm, spec)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "run.failed")


def test_a_device_that_stays_away_fails_the_tuning(start: Serve) -> None:
    farm = start(no_device_after_s=0.2)
    spec = asked(farm, farm.attach(real("p1"))[0])
    hand_over(farm, spec, FIRST)
    farm.attach()
    failed = eventually(lambda: (found := shown(farm, spec))["finished_at"] and found)
    assert failed["error"]["code"] == "tune.no_device"
    assert "was not attached" in failed["error"]["detail"]


@pytest.mark.parametrize(
    ("kernel", "code"),
    [(measured("7" * 64), "request.invalid"), (measured(FIRST, best=2), "request.invalid")],
)
def test_an_agent_tells_only_what_the_bench_has(lite_farm: Farm, kernel: Json, code: str) -> None:
    [phone] = lite_farm.attach(real("p1"))
    spec = asked(lite_farm, phone)
    hand_over(lite_farm, spec, FIRST)
    lease = take(lite_farm, "p1")
    assert lite_farm.run_call(lease, "kernels", kernels=[kernel]).json()["code"] == code
    lite_farm.run_call(lease, "report", problem=fault("run.failed", "bug"))


def test_a_bench_must_be_whole(lite_farm: Farm) -> None:
    spec = asked(lite_farm, lite_farm.attach(real("p1"))[0])
    assert call(lite_farm, spec, "complete", **outcome()).json()["code"] == "request.invalid"
    body = bench(lite_farm, spec, FIRST)
    body["kernels"][0]["library"]["sha256"] = "0" * 64
    missing = call(lite_farm, spec, "complete", **outcome(bench=body)).json()
    assert (missing["code"], "is not stored" in missing["detail"]) == ("request.invalid", True)
    lite_farm.client.post(f"/v1/tunings/{spec['tuning_id']}/cancel")


def test_devices_that_cannot_measure_are_refused(farm: Farm) -> None:
    def refusal(target: str) -> str:
        answer = ask(farm, options={"target": target})
        assert answer.status_code == 422
        return f"{answer.json()['code']}: {answer.json()['detail']}"

    assert refusal("any") == "tune.no_device: No device is attached that could measure kernels."
    assert refusal("dev_1") == "tune.no_device: There is no device dev_1."
    gone, broken, _, bare = farm.attach(
        real("gone"), real("broken", reason_unusable="no room"), device("v"), real("b", abis=[])
    )
    assert "is not usable: no room" in refusal(broken["id"])
    assert refusal(bare["id"]).startswith("tune.unsupported_target")
    farm.attach(real("broken", reason_unusable="no room"), device("v"))
    assert "cannot measure now: it is offline" in refusal(gone["id"])


def test_any_is_a_real_phone_where_there_is_one(farm: Farm) -> None:
    farm.attach(device("v1"), real("p1"), device("v2"))
    made = farm.ok(ask(farm, options={"target": "any"}))
    assert (made["device"]["name"], made["options"]["target"]) == ("phone-p1", made["device"]["id"])
