"""Which device a tuning measures on."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from service.contracts.devices import DeviceState
from service.contracts.errors import NnfarmError
from service.contracts.tuning import ANY_TARGET, HOST_TARGET, TuneOptions
from service.resources.devices import repository as devices
from service.resources.devices import service as device_rules
from service.resources.devices.tables import DeviceRow


def name_device(session: Session, options: TuneOptions) -> TuneOptions:
    """The options with the device that is meant; those of a tuning on the host as they are.

    `any` is a real phone where one is attached, and a free one rather than a busy one.

    Raises:
        NnfarmError: ``tune.no_device`` where it is not attached, ``tune.unsupported_target`` where
            no code can be built for it.
    """
    if options.target == HOST_TARGET:
        return options
    if options.target == ANY_TARGET:
        device = _any_of(row for row in devices.all_devices(session) if _is_fit(row))
    else:
        device = _named(session, options.target)
    return options.model_copy(update={"target": device.id})


def _is_fit(device: DeviceRow) -> bool:
    description = device.description
    usable = not description.reason_unusable and bool(description.abis)
    return usable and device_rules.is_attached(device)


def _any_of(found: Iterable[DeviceRow]) -> DeviceRow:
    device = min(
        found,
        key=lambda row: (row.description.simulated, row.state is not DeviceState.ONLINE, row.id),
        default=None,
    )
    if device is None:
        raise NnfarmError("tune.no_device", "No device is attached that could measure kernels.")
    return device


def _named(session: Session, device_id: str) -> DeviceRow:
    device = devices.find(session, device_id)
    if device is None:
        raise NnfarmError("tune.no_device", f"There is no device {device_id}.")
    name = device.description.name
    if device.description.reason_unusable:
        reason = device.description.reason_unusable
        raise NnfarmError("tune.no_device", f"{name} is not usable: {reason}")
    if not device_rules.is_attached(device):
        raise NnfarmError("tune.no_device", f"{name} cannot measure now: it is {device.state}.")
    if not device.description.abis:
        raise NnfarmError("tune.unsupported_target", f"No code can be built for {name}.")
    return device
