from __future__ import annotations

from collections.abc import Callable

from tests.service.farm import AGENT_TOKEN, Farm, bearer, device, eventually

Serve = Callable[..., Farm]


def state(farm: Farm, device_id: str) -> str:
    return str(farm.get(f"/v1/devices/{device_id}")["state"])


def test_report_brings_devices_online_and_missing_ones_offline(farm: Farm) -> None:
    first, second = farm.attach(device("p1"), device("p2"))
    assert (first["state"], second["state"]) == ("online", "online")
    again = farm.attach(device("p2", level=5))
    assert [item["id"] for item in again] == [second["id"]]
    assert again[0]["description"]["feature_level"] == 5
    assert state(farm, first["id"]) == "offline"
    assert [item["name"] for item in farm.get("/v1/devices")["items"]] == ["phone-p2", "phone-p1"]


def test_same_serial_at_another_agent_is_another_device(farm: Farm) -> None:
    here = farm.attach(device("127.0.0.1:5601"), agent="here")
    there = farm.attach(device("127.0.0.1:5601"), agent="there")
    assert here[0]["id"] != there[0]["id"]
    assert state(farm, here[0]["id"]) == "online"


def test_unusable_device_says_why(farm: Farm) -> None:
    found = farm.attach(device("p1", reason_unusable="no qemu"))[0]
    assert found["state"] == "maintenance"
    assert found["description"]["reason_unusable"] == "no qemu"


def test_silent_agent_loses_its_devices(start: Serve, database_url: str) -> None:
    farm = start(database_url=database_url, device_timeout_s=0.2)
    found = farm.attach(device("p1"))[0]
    eventually(lambda: state(farm, found["id"]) == "offline")


def test_report_needs_the_agents_token_and_name(lite_farm: Farm) -> None:
    body = {"agent_name": "a", "devices": []}
    assert lite_farm.client.put("/internal/v1/agents/a", json=body).status_code == 401
    path = "/internal/v1/agents/b"
    answer = lite_farm.client.put(path, json=body, headers=bearer(AGENT_TOKEN))
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
