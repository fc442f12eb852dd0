"""run_bench on a virtual phone, with a stand-in runner that does what a library's text says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from device_farm.bench_work import work_on_bench
from device_farm.client import AgentClient
from device_farm.drivers.adb import AdbDevice
from device_farm.protocols.device import CancelledError
from device_farm.resources.bundles import RUNNER, RuntimeBundle
from service.contracts.bench import Bench, BenchedKernel, BenchReport
from service.contracts.errors import NnfarmError
from service.contracts.runs import BenchLease, RunLease, RunReport
from service.contracts.targets import Abi

START = """echo '{"event": "start", "runner": "0", "target": "t", "pid": '$$'}'\n"""
END = """echo '{"event": "end", "engine": "cpu"}'\n"""
_TRACE = '[[["GetSBlock",[],["C","main"],["b0"]]],[]]'


def kernel_line(signature: str, **members: object) -> str:
    before = {"median_us": 10.0, "spread_us": 1.0}
    found = {"before": before, "rounds": 3, "tried": 1, "duration_us": 5} | members
    event = {"event": "kernel", "signature": signature} | found
    return f"echo '{json.dumps(event)}'\n"


class Service(AgentClient):
    """Keeps what it is told; fails with these errors first."""

    def __init__(self, *errors: NnfarmError) -> None:
        self.errors = list(errors)
        self.told: list[tuple[BenchedKernel, ...]] = []

    def tell_kernels(self, lease: BenchLease, report: BenchReport) -> None:
        assert report.fence == lease.fence
        if self.errors:
            raise self.errors.pop(0)
        self.told.append(report.kernels)

    def heartbeat(self, lease: RunLease) -> None:
        raise AssertionError(lease)


Work = Callable[..., RunReport]


@pytest.fixture
def work(phone: AdbDevice, tmp_path: Path) -> Work:
    """Has the phone run a bench of two kernels, whose first library is this script."""
    runner = tmp_path / RUNNER
    runner.write_text('#!/bin/sh\ntest "$1" = --bench || exit 2\n. "${2%/*}/kernel_0.so"\n')

    def run(service: Service, script: str) -> RunReport:
        library = tmp_path / "library"
        library.write_text(script)
        sha256 = hashlib.sha256(script.encode()).hexdigest()
        kernels = [
            {
                "signature": signature * 64,
                "kernel": f"kernel {signature}",
                "calls": 1,
                "tensors": [],
                "library": {
                    "path": f"kernel_{number}.so",
                    "sha256": sha256,
                    "size_bytes": len(script),
                },
                "candidates": [_TRACE],
            }
            for number, signature in enumerate("56")
        ]
        bench = Bench.model_validate({"abi": "x86_64", "kernels": kernels, "time_limit_ms": 9})
        lease = BenchLease(
            run_id="run_1",
            fence=7,
            serial="s",
            lease_token="t",
            expires_in_s=30,
            abi=Abi.X86_64,
            bench=bench,
        )
        bundle = RuntimeBundle("linux-x86_64", hashlib.sha256(b"bench").hexdigest(), (runner,))
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        return work_on_bench(
            phone, lease, service, bundle, lambda _: library, folder, lambda: False
        )

    return run


def test_each_kernel_is_told_as_it_comes(work: Work, phone: AdbDevice) -> None:
    after = {"median_us": 8.0, "spread_us": 0.5}
    script = START + kernel_line("5" * 64, after=after, best=0) + kernel_line("6" * 64)
    service = Service()
    report = work(service, script + "echo a log line >&2\n" + END)
    assert (report.bench_done, report.fence, report.problem) == (True, 7, None)
    assert report.log_tail == "a log line\n"
    [[first], [second]] = service.told
    assert (first.best, first.after and first.after.median_us, second.best) == (0, 8.0, None)
    assert phone.run('ls "$TMPDIR/nnfarm/runs"', timeout_s=10).stdout == ""


def test_what_the_service_missed_is_told_with_the_next(work: Work) -> None:
    service = Service(NnfarmError("infra.unavailable", "It restarts."))
    work(service, START + kernel_line("5" * 64) + kernel_line("6" * 64) + END)
    assert [[one.signature[0] for one in told] for told in service.told] == [["5", "6"]]


def test_a_lease_that_is_anothers_ends_the_run(work: Work) -> None:
    service = Service(NnfarmError("request.fenced", "Another agent has it."))
    with pytest.raises(CancelledError):
        work(service, START + kernel_line("5" * 64) + "sleep 100\n" + END)


def test_one_kernel_that_cannot_run_does_not_fail_the_others(work: Work) -> None:
    service = Service()
    broken = kernel_line("5" * 64, before=None, error="SIGSEGV (11)")
    work(service, START + broken + kernel_line("6" * 64) + END)
    assert [[one.signature[0] for one in told] for told in service.told] == [["6"]]


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (kernel_line("5" * 64, before=None, error="no libm"), "run.failed", "kernel 5: no libm"),
        ("exit 3\n", "run.bad_package", "code 3"),
        ("kill -9 $$\n", "run.crashed", "Signal 9"),
        ("exit 0\n", "run.failed", "without all its events"),
    ],
)
def test_a_bench_that_fails_says_why(work: Work, script: str, code: str, words: str) -> None:
    with pytest.raises(NnfarmError) as failure:
        work(Service(), START + script + END)
    assert (failure.value.code, words in failure.value.detail) == (code, True)
