"""Whether a measurement may be published: rules about the phone's state and the samples."""

from __future__ import annotations

from dataclasses import dataclass

from service.contracts.runs import DeviceCondition, LatencyStats


@dataclass(frozen=True)
class Limits:
    """Beyond these a latency says more about the moment than about the artifact."""

    max_temperature_c: float = 42.0
    max_thermal_status: int = 1  # THERMAL_STATUS_LIGHT: from MODERATE on, phones throttle
    min_battery_percent: float = 15.0  # below, Android's battery saver lowers clocks
    charging_percent: float = 90.0  # charging a nearly full battery heats the phone
    max_relative_mad: float = 0.2


def doubts(
    latency: LatencyStats,
    before: DeviceCondition,
    after: DeviceCondition,
    limits: Limits | None = None,
) -> tuple[str, ...]:
    """One sentence for each broken rule; empty: the measurement is valid."""
    limits = limits or Limits()
    notes = [
        f"{when} the run: {note}"
        for when, condition in (("before", before), ("after", after))
        for note in _condition_doubts(condition, limits)
    ]
    if latency.median_us > 0 and latency.mad_us / latency.median_us > limits.max_relative_mad:
        share = latency.mad_us / latency.median_us
        notes.append(
            f"the samples scatter: their median absolute deviation is {share:.0%} of the median, "
            f"at most {limits.max_relative_mad:.0%} is allowed"
        )
    return tuple(notes)


def _condition_doubts(condition: DeviceCondition, limits: Limits) -> list[str]:
    notes = []
    temperature, battery = condition.temperature_c, condition.battery_percent
    if temperature is not None and temperature > limits.max_temperature_c:
        notes.append(f"{temperature:g} °C, at most {limits.max_temperature_c:g} °C is allowed")
    status = condition.thermal_status
    if status is not None and status > limits.max_thermal_status:
        notes.append(f"thermal status {status}, at most {limits.max_thermal_status} is allowed")
    if battery is not None and condition.charging and battery >= limits.charging_percent:
        notes.append(f"charging at {battery:g} %, allowed below {limits.charging_percent:g} %")
    if battery is not None and not condition.charging and battery < limits.min_battery_percent:
        notes.append(f"battery at {battery:g} %, at least {limits.min_battery_percent:g} % needed")
    return notes
