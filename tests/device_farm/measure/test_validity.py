from __future__ import annotations

import pytest

from device_farm.measure.latency import latency_stats
from device_farm.measure.validity import doubts
from service.contracts.runs import DeviceCondition

CALM = DeviceCondition(
    battery_percent=80, charging=False, temperature_c=30.0, thermal_status=0, governor=None
)
STEADY = latency_stats([100.0, 101.0, 99.0, 100.0], simulated=False)


def test_a_calm_phone_and_steady_samples_are_valid() -> None:
    assert doubts(STEADY, CALM, CALM) == ()


def test_a_phone_that_tells_nothing_is_not_doubted() -> None:
    assert doubts(STEADY, DeviceCondition(), DeviceCondition()) == ()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"temperature_c": 42.5}, "42.5 °C, at most 42 °C"),
        ({"thermal_status": 2}, "thermal status 2, at most 1"),
        ({"charging": True, "battery_percent": 95}, "charging at 95 %"),
        ({"battery_percent": 9}, "battery at 9 %"),
    ],
)
def test_each_rule_is_told_with_its_time(change: dict[str, float], note: str) -> None:
    bad = CALM.model_copy(update=change)
    assert [text.startswith("before the run: ") for text in doubts(STEADY, bad, CALM)] == [True]
    (after,) = doubts(STEADY, CALM, bad)
    assert after.startswith("after the run: ")
    assert note in after


@pytest.mark.parametrize(
    "change",
    [
        {"temperature_c": 42.0},
        {"thermal_status": 1},
        {"charging": True, "battery_percent": 50},
        {"charging": True, "battery_percent": 5},
        {"battery_percent": 15},
    ],
)
def test_limits_themselves_are_allowed(change: dict[str, float]) -> None:
    assert doubts(STEADY, CALM.model_copy(update=change), CALM) == ()


def test_scattered_samples_are_doubted() -> None:
    noisy = latency_stats([100.0, 200.0, 300.0, 400.0], simulated=False)
    (note,) = doubts(noisy, CALM, CALM)
    assert "scatter" in note
    assert "40%" in note
