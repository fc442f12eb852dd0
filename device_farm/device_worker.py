"""One thread a phone: finds out what it is, then leases runs for it and carries them out."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from device_farm.bench_work import work_on_bench
from device_farm.client import AgentClient
from device_farm.heartbeat import Heartbeat
from device_farm.protocols.device import CancelledError, DeviceLostError, DeviceProtocol
from device_farm.resources.bundles import MissingBundleError, RuntimeBundle, find_bundle
from device_farm.resources.part_cache import PartCache
from device_farm.settings import FarmSettings
from device_farm.strategies.describe import describe
from device_farm.strategies.device_store import StoredPart
from device_farm.strategies.measurement import measurement_of
from device_farm.strategies.recovery import recover
from device_farm.strategies.run_package import PackageRun, run_package
from device_farm.strategies.runner_call import RunFailedError
from service.contracts.devices import DeviceDescription
from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.runs import BenchLease, Lease, LeaseRequest, RunLease, RunReport
from service.contracts.targets import Abi

log = logging.getLogger(__name__)

_REPORT_ATTEMPTS = 10
_NEEDS_RECOVERY = {"run.device_lost", "run.timeout"}


class Backoff:
    """Growing pauses after failures, ended early by `stop`."""

    def __init__(
        self, stop: threading.Event, first_s: float = 0.5, longest_s: float = 30.0
    ) -> None:
        self._stop = stop
        self._first_s = self._next_s = first_s
        self._longest_s = longest_s

    def pause(self) -> None:
        """Waits; each time twice as long, up to the longest pause."""
        self._stop.wait(self._next_s)
        self._next_s = min(2 * self._next_s, self._longest_s)

    def reset(self) -> None:
        """Something went well: the next pause is short again."""
        self._next_s = self._first_s


@dataclass(frozen=True)
class Workshop:
    """What the workers of one agent share."""

    settings: FarmSettings
    client: AgentClient
    cache: PartCache
    wake_ups: SimpleQueue[None]
    """Takes an item when a description changed, so that it is announced at once."""


class DeviceWorker(threading.Thread):
    """Works for one phone until `stop`."""

    def __init__(self, serial: str, device: DeviceProtocol, workshop: Workshop) -> None:
        super().__init__(name=f"phone {serial}", daemon=True)
        self.serial = serial
        self.device = device
        self.description: DeviceDescription | None = None
        self.announced = threading.Event()
        self.running = False
        self._workshop = workshop
        self._stop_event = threading.Event()

    def stop(self) -> None:
        """Tells the thread to end; a run that goes on is given back."""
        self._stop_event.set()
        self.announced.set()

    def run(self) -> None:
        """The thread's work; see `threading.Thread.run`."""
        backoff = Backoff(self._stop_event)
        while not self._stop_event.is_set():
            try:
                if self._usable():
                    self._work_once()
                    backoff.reset()
                    continue
            except NnfarmError as error:
                log.warning("%s: %s: %s", self.serial, error.code, error)
            except Exception:
                log.exception("%s: the worker failed", self.serial)
            backoff.pause()

    def _usable(self) -> bool:
        """Describes the phone where that is due; False when it cannot be used now."""
        if self.description is None or self.description.reason_unusable:
            self._describe()
        if self.description is None or self.description.reason_unusable:
            return False
        self.announced.wait()
        return not self._stop_event.is_set()

    def _describe(self) -> None:
        try:
            found = describe(self.device, self.serial, self._workshop.settings.bundle_dir())
        except DeviceLostError as error:
            log.warning("%s: %s", self.serial, error)
            self._recover()
            return
        self._set_description(found)

    def _recover(self) -> None:
        reason = recover(self.device)
        if reason and self.description is not None:
            self._set_description(self.description.model_copy(update={"reason_unusable": reason}))

    def _set_description(self, found: DeviceDescription) -> None:
        if found == self.description:
            return
        if found.reason_unusable:
            log.warning("%s cannot be used: %s", self.serial, found.reason_unusable)
        self.description = found
        self.announced.clear()
        self._workshop.wake_ups.put(None)

    def _work_once(self) -> None:
        request = LeaseRequest(
            agent_name=self._workshop.settings.agent_name,
            serials=(self.serial,),
            takes_benches=True,
        )
        lease = self._workshop.client.lease(request)
        if lease is None:
            return
        self.running = True
        try:
            self._carry_out(lease)
        finally:
            self.running = False

    def _carry_out(self, lease: Lease | BenchLease) -> None:
        log.info("%s: run %s begins", self.serial, lease.run_id)
        with Heartbeat(self._workshop.client, lease) as heartbeat:
            try:
                report = self._run(lease, heartbeat)
            except CancelledError:
                if heartbeat.lost:
                    return
                report = _problem(lease, NnfarmError("infra.unavailable", "The agent stops."))
            self._send(lease, report)
        if report.problem and report.problem.code in _NEEDS_RECOVERY:
            self._recover()

    def _run(self, lease: Lease | BenchLease, heartbeat: Heartbeat) -> RunReport:
        def cancelled() -> bool:
            return heartbeat.lost or self._stop_event.is_set()

        if cancelled():  # the lease came when the agent was told to stop
            raise CancelledError(lease.run_id)
        try:
            with tempfile.TemporaryDirectory(dir=self._workshop.settings.work_dir) as folder:
                if isinstance(lease, BenchLease):
                    return self._run_bench(lease, Path(folder), cancelled)
                return self._run_package(lease, Path(folder), cancelled)
        except NnfarmError as error:
            return _problem(lease, error)
        except CancelledError:
            raise
        except Exception as error:
            log.exception("%s: run %s", self.serial, lease.run_id)
            return _problem(lease, NnfarmError("bug.internal", f"The agent failed: {error!r}"))

    def _run_package(self, lease: Lease, folder: Path, cancelled: Callable[[], bool]) -> RunReport:
        job = self._prepare(lease, folder)
        expected = self._fetch(lease, lease.evaluation.expected_sha256)
        result = run_package(self.device, job, cancelled)
        measurement = measurement_of(
            result, lease.manifest, lease.evaluation, expected, simulated=self._is_virtual()
        )
        return RunReport(fence=lease.fence, measurement=measurement, log_tail=result.log_tail)

    def _run_bench(
        self, lease: BenchLease, folder: Path, cancelled: Callable[[], bool]
    ) -> RunReport:
        return work_on_bench(
            self.device,
            lease,
            self._workshop.client,
            self._bundle(lease.abi),
            lambda sha256: self._fetch(lease, sha256),
            folder,
            cancelled,
        )

    def _is_virtual(self) -> bool:
        return self.description is not None and self.description.simulated

    def _bundle(self, abi: Abi) -> RuntimeBundle:
        folder = self._workshop.settings.bundle_dir()
        try:
            return find_bundle(folder, abi, virtual=self._is_virtual())
        except MissingBundleError as error:
            raise NnfarmError("run.failed", str(error)) from error

    def _prepare(self, lease: Lease, folder: Path) -> PackageRun:
        parts = {
            part.path: StoredPart(part.sha256, self._fetch(lease, part.sha256))
            for part in lease.manifest.parts
        }
        inputs = lease.evaluation.inputs_sha256
        return PackageRun(
            run_id=f"{lease.run_id}-{lease.fence}",
            manifest=lease.manifest,
            parts=parts,
            inputs=StoredPart(inputs, self._fetch(lease, inputs)),
            bundle=self._bundle(lease.abi),
            measure=lease.measure,
            folder=folder,
        )

    def _fetch(self, lease: RunLease, sha256: str) -> Path:
        client = self._workshop.client
        return self._workshop.cache.fetch(sha256, lambda name: client.download(lease, name))

    def _send(self, lease: RunLease, report: RunReport) -> None:
        backoff = Backoff(self._stop_event)
        for _ in range(_REPORT_ATTEMPTS):
            try:
                self._workshop.client.report(lease, report)
            except NnfarmError as error:
                log.warning("%s: report of run %s: %s", self.serial, lease.run_id, error)
                if error.kind.error_class is not ErrorClass.INFRA or self._stop_event.is_set():
                    return
                backoff.pause()
            else:
                log.info("%s: run %s is reported", self.serial, lease.run_id)
                return


def _problem(lease: RunLease, error: NnfarmError) -> RunReport:
    log.warning("run %s: %s: %s", lease.run_id, error.code, error)
    log_tail = error.log_tail if isinstance(error, RunFailedError) else ""
    return RunReport(fence=lease.fence, problem=error.to_problem(), log_tail=log_tail)
