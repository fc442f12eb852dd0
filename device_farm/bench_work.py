"""An agent's work on a bench: fetch it, run it, tell each kernel as it comes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from device_farm.client import AgentClient
from device_farm.protocols.device import CancelledError, DeviceProtocol
from device_farm.resources.bundles import RuntimeBundle
from device_farm.strategies.device_store import StoredPart
from device_farm.strategies.run_bench import BenchRun, run_bench
from service.contracts.bench import BenchedKernel, BenchReport
from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.runs import BenchLease, RunReport

log = logging.getLogger(__name__)


class Teller:
    """Tells the service what is measured; what it misses is told with the next.

    Args:
        client: of the agent.
        lease: whose kernels are told.
    """

    def __init__(self, client: AgentClient, lease: BenchLease) -> None:
        self._client = client
        self._lease = lease
        self._untold: list[BenchedKernel] = []
        self.fenced = False
        """The lease is another's: nobody waits for more."""

    def tell(self, kernel: BenchedKernel) -> None:
        """Tells a kernel, unless the service is away."""
        self._untold.append(kernel)
        try:
            self.finish()
        except NnfarmError as error:
            log.warning("run %s: kernel not told: %s", self._lease.run_id, error)
            self.fenced = error.kind.error_class is not ErrorClass.INFRA

    def finish(self) -> None:
        """Tells what is left.

        Raises:
            NnfarmError: the service's answer, or that it is away.
        """
        if self._untold:
            report = BenchReport(fence=self._lease.fence, kernels=tuple(self._untold))
            self._client.tell_kernels(self._lease, report)
            self._untold.clear()


def work_on_bench(
    device: DeviceProtocol,
    lease: BenchLease,
    client: AgentClient,
    bundle: RuntimeBundle,
    fetch: Callable[[str], Path],
    folder: Path,
    cancelled: Callable[[], bool],
) -> RunReport:
    """Carries a bench out; gives the final word on its lease.

    Raises:
        NnfarmError: of the run, or of the service.
        CancelledError: `cancelled` turned true, or the lease is another's.
    """
    libraries = [kernel.library for kernel in lease.bench.kernels]
    job = BenchRun(
        run_id=f"{lease.run_id}-{lease.fence}",
        bench=lease.bench,
        libraries={one.path: StoredPart(one.sha256, fetch(one.sha256)) for one in libraries},
        bundle=bundle,
        folder=folder,
    )
    teller = Teller(client, lease)
    log_tail = run_bench(device, job, lambda: cancelled() or teller.fenced, teller.tell)
    if teller.fenced:
        raise CancelledError(lease.run_id)
    teller.finish()
    return RunReport(fence=lease.fence, bench_done=True, log_tail=log_tail)
