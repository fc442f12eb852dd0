"""Reads a phone's battery, temperature, thermal status and clock governor."""

from __future__ import annotations

import re

from device_farm.protocols.device import ShellProtocol
from service.contracts.runs import DeviceCondition

_TIMEOUT_S = 15.0
_SEPARATOR = "--nnfarm--"
_COMMAND = (
    f"dumpsys battery 2>/dev/null; echo {_SEPARATOR}; dumpsys thermalservice 2>/dev/null; "
    f"echo {_SEPARATOR}; cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null; :"
)
_CHARGING_STATES = {2, 5}  # BatteryManager: CHARGING, FULL


def read_condition(device: ShellProtocol) -> DeviceCondition:
    """What the phone tells of its state now; null where it does not.

    Raises:
        DeviceLostError, DeviceTimeoutError: see `ShellProtocol.run`.
    """
    output = device.run(_COMMAND, timeout_s=_TIMEOUT_S).stdout
    battery, thermal, governor = output.split(_SEPARATOR, 2)
    level, scale = _number(battery, "level"), _number(battery, "scale")
    tenths = _number(battery, "temperature")
    state = _number(battery, "status")
    status = _number(thermal, "Thermal ?Status")
    return DeviceCondition(
        battery_percent=None if level is None else 100.0 * level / (scale or 100),
        charging=None if state is None else state in _CHARGING_STATES,
        temperature_c=None if tenths is None else tenths / 10,
        thermal_status=status,
        governor=governor.strip() or None,
    )


def _number(text: str, key: str) -> int | None:
    found = re.search(rf"^\s*{key}: (-?\d+)\s*$", text, re.MULTILINE)
    return int(found[1]) if found else None
