from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.service.farm import Farm, device, follow, measurement

Serve = Callable[..., Farm]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [f"{event['event']}:{event['data'].get('status', '')}" for event in events]


def progress(done: int) -> dict[str, Any]:
    return {"events": [{"stage": "build", "done": done, "total": 2}]}


def test_late_client_gets_everything_and_the_stream_ends(farm: Farm) -> None:
    spec = farm.claim(farm.compile()["id"])
    farm.job_call(spec, "events", progress(1))
    farm.job_call(spec, "complete", farm.outcome(spec))
    events = list(follow(farm, spec["compilation_id"]))
    assert kinds(events) == [
        "status:queued",
        "status:running",
        "progress:",
        "status:succeeded",
    ]
    assert [event["id"] for event in events] == ["1", "2", "3", "4"]
    assert events[2]["data"]["done"] == 1


def test_last_event_id_resumes(farm: Farm) -> None:
    spec = farm.claim(farm.compile()["id"])
    farm.job_call(spec, "complete", farm.outcome(spec))
    events = list(follow(farm, spec["compilation_id"], last_event_id="2"))
    assert [event["id"] for event in events] == ["3"]
    path = f"/v1/compilations/{spec['compilation_id']}/events"
    answer = farm.client.get(path, headers={"Last-Event-ID": "-1"})
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")


def test_events_arrive_while_the_job_runs_until_the_last_run_is_final(farm: Farm) -> None:
    farm.attach(device("p1"))
    compilation = farm.compile(levels=[1], run_on="any")
    events: list[dict[str, Any]] = []
    seen = threading.Semaphore(0)

    def listen() -> None:
        for event in follow(farm, compilation["id"]):
            events.append(event)
            seen.release()

    def wait_for_event() -> None:
        assert seen.acquire(timeout=10), events

    listener = threading.Thread(target=listen)
    listener.start()
    wait_for_event()  # queued
    spec = farm.claim(compilation["id"])
    wait_for_event()  # running
    farm.job_call(spec, "events", progress(2))
    wait_for_event()
    farm.job_call(spec, "complete", farm.outcome(spec))
    wait_for_event()  # succeeded
    wait_for_event()  # the run is queued
    lease = farm.lease("p1")
    assert lease is not None
    wait_for_event()
    assert farm.run_call(lease, "report", measurement=measurement()).status_code == 204
    listener.join(timeout=10)
    assert not listener.is_alive()
    assert kinds(events)[-4:] == ["status:succeeded", "run:queued", "run:leased", "run:succeeded"]


def test_quiet_stream_is_kept_alive(start: Serve) -> None:
    farm = start(event_ping_s=1)
    path = f"/v1/compilations/{farm.compile()['id']}/events"
    with farm.client.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert any(line.startswith(": ping") for line in answer.iter_lines())


def test_unknown_compilation_has_no_events(lite_farm: Farm) -> None:
    answer = lite_farm.client.get("/v1/compilations/cmp_none/events")
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")
