"""The agent: `python -m device_farm.agent`. Announces phones and has one worker for each."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from queue import Empty, SimpleQueue

from pydantic import ValidationError

from device_farm.client import AgentClient
from device_farm.device_worker import DeviceWorker, Workshop
from device_farm.drivers.adb_server import AdbServerError
from device_farm.resources.offered_bundles import fetch_bundles
from device_farm.resources.part_cache import PartCache
from device_farm.resources.rack import Rack, Slot
from device_farm.settings import FarmSettings
from device_farm.virtual_phone.profile import ProfileError
from service.contracts.devices import AgentReport, DeviceDescription
from service.contracts.errors import NnfarmError

log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 20.0
_FIRST_RETRY_S = 0.25


class Agent:
    """Keeps the service's picture of the rack up to date, until `stop`."""

    def __init__(self, settings: FarmSettings, rack: Rack, client: AgentClient) -> None:
        self._settings = settings
        self._rack = rack
        self._client = client
        # A SimpleQueue, because a signal handler may put into it at any moment; setting an Event
        # there could dead-lock.
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        self._stopping = False
        self._workers: dict[str, DeviceWorker] = {}
        cache = PartCache(settings.work_dir / "parts")
        self._workshop = Workshop(settings, client, cache, self._wake_ups)

    def stop(self) -> None:
        """Ends `serve`; may be called from a signal handler."""
        self._stopping = True
        self._wake_ups.put(None)

    def serve(self) -> None:
        """Scans and announces regularly, and at once when a phone's description changes."""
        interval_s = self._settings.report_interval_s
        retry_s = _FIRST_RETRY_S
        if self._settings.runtime_source == "service":
            self._fetch_bundles()
        while not self._stopping:
            slots = self._rack.scan()
            self._match_workers(slots)
            announced = self._announce(slots)
            retry_s = _FIRST_RETRY_S if announced else min(2 * retry_s, interval_s)
            self._pause(interval_s if announced else retry_s)
        self._shut_down()

    def _fetch_bundles(self) -> None:
        """Has the service's bundles, waiting for the service where that must be."""
        retry_s = _FIRST_RETRY_S
        while not self._stopping:
            try:
                for target in fetch_bundles(self._client, self._settings.bundle_dir()):
                    log.info("runtime bundle for %s from the service", target)
            except NnfarmError as error:
                log.warning("no runtime bundles yet: %s", error)
            else:
                return
            self._pause(retry_s)
            retry_s = min(2 * retry_s, self._settings.report_interval_s)

    def _pause(self, longest_s: float) -> None:
        with contextlib.suppress(Empty):
            self._wake_ups.get(timeout=longest_s)
            while True:  # several reasons to wake up are one
                self._wake_ups.get_nowait()

    def _match_workers(self, slots: tuple[Slot, ...]) -> None:
        """Has exactly one worker for each phone that is there."""
        present = {slot.serial: slot.device for slot in slots if slot.device is not None}
        for serial, worker in list(self._workers.items()):
            if present.get(serial) is not worker.device:
                worker.stop()
                del self._workers[serial]
        for serial, device in present.items():
            if serial not in self._workers:
                worker = DeviceWorker(serial, device, self._workshop)
                self._workers[serial] = worker
                worker.start()

    def _announce(self, slots: tuple[Slot, ...]) -> bool:
        described = {
            worker: description
            for worker in self._workers.values()
            if (description := worker.description) is not None
        }
        unusable = [slot.unusable for slot in slots if slot.unusable is not None]
        if not self._send(tuple(described.values()) + tuple(unusable)):
            return False
        for worker, description in described.items():
            if worker.description is description:
                worker.announced.set()
        return True

    def _send(self, devices: tuple[DeviceDescription, ...]) -> bool:
        report = AgentReport(agent_name=self._settings.agent_name, devices=devices)
        try:
            self._client.announce(report)
        except NnfarmError as error:
            log.warning("devices are not announced: %s", error)
            return False
        return True

    def _shut_down(self) -> None:
        for worker in self._workers.values():
            worker.stop()
        for worker in self._workers.values():
            # An idle worker sits in a long poll that it may sleep through; a run is given back.
            if worker.running:
                worker.join(_STOP_TIMEOUT_S)
        self._send(())


def main() -> int:
    """Runs an agent with the settings of the environment until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = FarmSettings()
        settings.work_dir.mkdir(parents=True, exist_ok=True)
        client = AgentClient(settings.service_url, settings.agent_token)
        with Rack(settings) as rack:
            agent = Agent(settings, rack, client)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: agent.stop())
            log.info("agent %s serves %s", settings.agent_name, settings.service_url)
            agent.serve()
    except ValidationError as error:
        print(f"agent: settings: {error}", file=sys.stderr)
        return 2
    except (ProfileError, AdbServerError, OSError) as error:
        print(f"agent: {error}", file=sys.stderr)
        return 1
    client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
