"""The rack: every phone this agent has, virtual and real."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import (
    AdbServer,
    AdbServerError,
    carried_adb,
    private_server,
    shared_server,
)
from device_farm.protocols.device import DeviceProtocol
from device_farm.resources.virtual_phones import PhoneStartError, VirtualPhone, make_phones
from device_farm.settings import FarmSettings
from service.contracts.devices import DeviceDescription

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Slot:
    """One place of the rack: a phone that can be spoken to, or the reason why not."""

    serial: str
    device: DeviceProtocol | None
    unusable: DeviceDescription | None = None


class Rack(contextlib.AbstractContextManager["Rack"]):
    """Looks after adb servers and virtual phones; `scan` says what is there.

    Raises:
        ProfileError: a virtual phone's profile is missing or not valid.
        AdbServerError: on entering, when an adb server does not start.
    """

    def __init__(self, settings: FarmSettings) -> None:
        self._settings = settings
        self._stack = contextlib.ExitStack()
        self._program = Path(settings.adb_path) if settings.adb_path else carried_adb()
        self._virtual_server: AdbServer | None = None
        self._real_server: AdbServer | None = None
        self._virtual = make_phones(
            settings.virtual_phone_names(), settings.work_dir / "phones", settings.simulator_dir
        )
        self._devices: dict[str, AdbDevice] = {}
        self._reasons_logged: set[str] = set()

    def __enter__(self) -> Rack:
        with contextlib.ExitStack() as stack:
            if self._virtual:
                home = self._settings.work_dir / "adb"
                self._virtual_server = stack.enter_context(private_server(self._program, home))
            if self._settings.usb_phones or self._settings.tcp_phone_serials():
                self._real_server = stack.enter_context(
                    shared_server(self._program, self._settings.adb_server_port)
                )
            for phone in self._virtual:
                stack.callback(phone.stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def scan(self) -> tuple[Slot, ...]:
        """Everything that is plugged in now; starts virtual phones that are not running."""
        slots = [self._virtual_slot(phone) for phone in self._virtual]
        if self._real_server is not None:
            try:
                slots += self._real_slots(self._real_server)
            except AdbServerError as error:
                log.warning("real phones cannot be seen: %s", error)
        return tuple(slots)

    def _virtual_slot(self, phone: VirtualPhone) -> Slot:
        serial = f"{phone.label}@{self._settings.agent_name}"
        if phone.missing:
            return self._virtual_unusable(serial, phone, phone.missing)
        if not phone.alive:
            assert self._virtual_server is not None, "the rack has been entered"
            try:
                address = phone.start()
                if not self._virtual_server.connect(address):
                    raise PhoneStartError(f"{phone.label}: adb cannot connect to {address}")
            except (PhoneStartError, AdbServerError) as error:
                return self._virtual_unusable(serial, phone, str(error))
            self._devices[serial] = AdbDevice(self._virtual_server, address)
        return Slot(serial, self._devices[serial])

    def _virtual_unusable(self, serial: str, phone: VirtualPhone, reason: str) -> Slot:
        profile = phone.profile
        description = DeviceDescription(
            serial=serial,
            name=profile.name,
            model="nnfarm virtual phone",
            abis=(profile.abi,),
            sdk_level=profile.sdk_level,
            feature_level=profile.feature_level,
            simulated=True,
            reason_unusable=reason,
        )
        return self._unusable(description)

    def _real_slots(self, server: AdbServer) -> list[Slot]:
        wanted = self._settings.tcp_phone_serials()
        known = {phone.serial for phone in server.devices()}
        for serial in wanted:
            if serial not in known:
                server.connect(serial)
        slots = []
        for phone in server.devices():
            if ":" in phone.serial and phone.serial not in wanted:
                continue  # somebody else's network phone
            if ":" not in phone.serial and not self._settings.usb_phones:
                continue
            if phone.ready:
                device = self._devices.setdefault(phone.serial, AdbDevice(server, phone.serial))
                slots.append(Slot(phone.serial, device))
            else:
                slots.append(self._real_unusable(phone.serial, phone.state))
        return slots

    def _real_unusable(self, serial: str, state: str) -> Slot:
        reason = f"adb says {state}"
        if state == "unauthorized":
            reason += ": accept this machine's key on the phone"
        description = DeviceDescription(
            serial=serial,
            name=serial,
            model="",
            abis=(),
            sdk_level=0,
            feature_level=0,
            simulated=False,
            reason_unusable=reason,
        )
        return self._unusable(description)

    def _unusable(self, description: DeviceDescription) -> Slot:
        line = f"{description.name} cannot be used: {description.reason_unusable}"
        if line not in self._reasons_logged:
            self._reasons_logged.add(line)
            log.warning("%s", line)
        return Slot(description.serial, None, description)
