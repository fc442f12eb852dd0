"""run_package end to end on a virtual phone, with a stand-in runner that obeys the test."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import AdbServer
from device_farm.protocols.device import CancelledError, StorageFullError
from device_farm.resources.bundles import find_bundle
from device_farm.strategies.measurement import measurement_of
from device_farm.strategies.run_package import PackageResult, PackageRun, run_package
from device_farm.strategies.runner_call import RunFailedError
from service.contracts.errors import NnfarmError
from service.contracts.jobs import EvaluationSet
from service.contracts.runs import MeasureOptions, RunMeasurement
from service.contracts.targets import Abi
from tests.device_farm.conftest import MakeVirtualPhone
from tests.device_farm.stand_in import GOOD, SAMPLES, Package, make_bundle, make_package

NEVER = lambda: False  # noqa: E731
MakeRun = Callable[..., PackageRun]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    bundle = make_bundle(tmp_path / "runtime")

    def make(package: Package, timeout_s: float = 30.0) -> PackageRun:
        folder = tmp_path / "job"
        folder.mkdir(exist_ok=True)
        return PackageRun(
            run_id="run_1-1",
            manifest=package.manifest,
            parts={p.path: package.stored(p.sha256, tmp_path) for p in package.manifest.parts},
            inputs=package.stored(package.inputs_sha256, tmp_path),
            bundle=bundle,
            measure=MeasureOptions(timeout_s=timeout_s),
            folder=folder,
        )

    return make


def on_phone(phone: AdbDevice, command: str) -> list[str]:
    return phone.run(f'cd "$TMPDIR/nnfarm" && {command}', timeout_s=10).stdout.split()


def caches_on(phone: AdbDevice) -> list[str]:
    return on_phone(phone, "mkdir -p caches && ls caches")


def measure(package: Package, result: PackageResult, tmp_path: Path) -> RunMeasurement:
    evaluation = EvaluationSet(
        sample_count=4,
        inputs_sha256=package.inputs_sha256,
        expected_sha256=package.expected_sha256,
        labels=(1, 0, 1, 1),
        original_top1=0.75,
        synthetic=False,
    )
    expected = package.stored(package.expected_sha256, tmp_path).local
    return measurement_of(result, package.manifest, evaluation, expected, simulated=True)


def test_a_good_run_is_measured_on_every_sample(
    phone: AdbDevice, make_run: MakeRun, tmp_path: Path
) -> None:
    off_by_half = SAMPLES.copy()
    off_by_half[2, 0] += 0.5
    package = make_package(GOOD + "# on this phone for the first time\n", expected=off_by_half)
    result = run_package(phone, make_run(package), NEVER)
    measurement = measure(package, result, tmp_path)
    assert measurement.engine == "nnapi"
    assert measurement.accelerators == ("npu/1.0/4",)
    assert measurement.cpu_variant == "avx2"
    assert measurement.latency.median_us == 101
    assert measurement.latency.simulated
    assert (measurement.load_us, measurement.compile_us, measurement.first_run_us) == (10.5, 20, 30)
    assert (measurement.compile_cold_us, measurement.compile_cached_us) == (22, 3)
    assert measurement.peak_memory_bytes == 1_000_000
    assert measurement.accuracy.sample_count == 4
    assert measurement.accuracy.max_abs_error == 0.5
    assert (measurement.accuracy.top1, measurement.accuracy.agreement) == (0.75, 1.0)
    assert measurement.accuracy.original_top1 == 0.75
    assert measurement.valid
    assert measurement.before.battery_percent == 60
    assert measurement.after.temperature_c == 28.0
    assert not measurement.before.charging
    assert result.log_tail == "a log line\n"


def test_nothing_of_the_run_stays_and_parts_are_not_sent_again(
    phone: AdbDevice, make_run: MakeRun
) -> None:
    run = make_run(make_package())
    run_package(phone, run, NEVER)
    assert on_phone(phone, "ls runs") == []
    stamps = on_phone(phone, "stat -c %y.%i parts/* bundles/*/*")
    assert len(stamps) > 0
    run_package(phone, run, NEVER)
    assert on_phone(phone, "stat -c %y.%i parts/* bundles/*/*") == stamps


def test_the_compilation_cache_stays_for_the_next_run(
    phone: AdbDevice, make_run: MakeRun, tmp_path: Path
) -> None:
    package = make_package(GOOD + "# compiled once\n")
    others = set(caches_on(phone))
    run_package(phone, make_run(package), NEVER)
    (cache,) = set(caches_on(phone)) - others
    again = measure(package, run_package(phone, make_run(package), NEVER), tmp_path)
    assert (again.compile_us, again.compile_cold_us, again.compile_cached_us) == (20, None, 20)
    assert set(caches_on(phone)) - others == {cache}


def test_a_failed_run_leaves_no_cache(phone: AdbDevice, make_run: MakeRun) -> None:
    others = caches_on(phone)
    with pytest.raises(RunFailedError):
        run_package(phone, make_run(make_package("exit 5")), NEVER)
    assert caches_on(phone) == others


def test_caches_are_forgotten_when_they_are_large(phone: AdbDevice, make_run: MakeRun) -> None:
    on_phone(phone, "mkdir -p caches/old && truncate -s 300M caches/old/x")
    run_package(phone, make_run(make_package()), NEVER)
    assert "old" not in caches_on(phone)


def test_a_part_of_the_wrong_size_is_sent_again(phone: AdbDevice, make_run: MakeRun) -> None:
    run = make_run(make_package())
    run_package(phone, run, NEVER)
    on_phone(phone, "for f in parts/* bundles/*/*; do echo cut > $f; done")
    assert run_package(phone, run, NEVER).measured.end.engine == "nnapi"


@pytest.mark.parametrize(
    ("script", "code", "detail"),
    [
        ("exit 2", "run.failed", "code 2"),
        (
            'echo \'{"event": "error", "code": "x", "detail": "12 bytes"}\'; exit 3',
            "run.bad_package",
            "12 bytes",
        ),
        ("exit 4", "run.failed", "code 4"),
        ("echo gave up >&2; exit 5", "run.failed", "gave up"),
        ("exit 6", "run.failed", "code 6"),
        ("exit 7", "run.storage_full", "code 7"),
        ("kill -SEGV $$", "run.crashed", "Signal 11"),
        ('echo \'{"event": "sta\'; kill -ABRT $$', "run.crashed", "Signal 6"),
        ("exit 0", "run.failed", "without all its events"),
        ("echo rubbish; exit 0", "run.failed", "rubbish"),
        (GOOD.replace('cp "$inputs" "$outputs"', ":"), "run.failed", "No such file"),
    ],
)
def test_ends_of_the_runner_are_told_by_their_codes(
    phone: AdbDevice, make_run: MakeRun, script: str, code: str, detail: str
) -> None:
    with pytest.raises(NnfarmError, match=detail) as caught:
        run_package(phone, make_run(make_package(script)), NEVER)
    assert caught.value.code == code
    assert on_phone(phone, "ls runs") == []


def test_the_linker_is_told_where_the_libraries_are(phone: AdbDevice, make_run: MakeRun) -> None:
    """The bundle first, then what the phone's own shell has set."""
    own = phone.run("echo $LD_LIBRARY_PATH", timeout_s=10).stdout.strip()
    bundles = phone.run('echo "$TMPDIR"/nnfarm/bundles', timeout_s=10).stdout.strip()
    run = make_run(make_package('echo "path $LD_LIBRARY_PATH" >&2; exit 5'))
    with pytest.raises(RunFailedError) as failure:
        run_package(phone, run, NEVER)
    (line,) = re.findall("path (.*)", failure.value.log_tail)
    assert line == f"{bundles}/linux-x86_64.{run.bundle.id}:{own}"


def test_the_log_comes_with_a_failure(phone: AdbDevice, make_run: MakeRun) -> None:
    with pytest.raises(RunFailedError) as caught:
        run_package(phone, make_run(make_package("echo why >&2; exit 5")), NEVER)
    assert caught.value.log_tail == "why\n"


def test_a_run_that_hangs_is_ended(phone: AdbDevice, make_run: MakeRun) -> None:
    with pytest.raises(NnfarmError) as caught:
        run_package(phone, make_run(make_package("sleep 600"), timeout_s=0.5), NEVER)
    assert caught.value.code == "run.timeout"
    assert on_phone(phone, "ls runs") == []


def test_a_run_can_be_abandoned(phone: AdbDevice, make_run: MakeRun) -> None:
    with pytest.raises(CancelledError):
        run_package(phone, make_run(make_package("sleep 600")), lambda: True)
    assert on_phone(phone, "ls runs") == []


def test_a_phone_that_dies_is_device_lost(
    adb_server: AdbServer, virtual_phone: MakeVirtualPhone, make_run: MakeRun
) -> None:
    dying = virtual_phone()
    address = dying.start()
    assert adb_server.connect(address)

    def stop_when_running() -> bool:
        dying.stop()
        return False

    with pytest.raises(NnfarmError) as caught:
        run_package(
            AdbDevice(adb_server, address), make_run(make_package("sleep 600")), stop_when_running
        )
    assert caught.value.code == "run.device_lost"


def test_a_full_phone_forgets_old_parts_and_takes_the_new(
    phone: AdbDevice, make_run: MakeRun
) -> None:
    run_package(phone, make_run(make_package(GOOD + "# old\n")), NEVER)
    old = set(on_phone(phone, "ls parts"))
    device = FullOnce(phone)
    run_package(device, make_run(make_package(GOOD + "# new\n")), NEVER)  # type: ignore[arg-type]
    assert device.refused
    new = set(on_phone(phone, "ls parts"))
    assert len(old & new) == 1  # the inputs, which both runs share
    assert len(new) == 2


class FullOnce:
    """A phone whose storage is full for the first part that is pushed."""

    def __init__(self, phone: AdbDevice) -> None:
        self._phone = phone
        self.refused = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._phone, name)

    def push(self, local: Path, remote: str) -> None:
        if "/parts/" in remote and not self.refused:
            self.refused = True
            raise StorageFullError(remote)
        self._phone.push(local, remote)


def test_outputs_of_another_form_are_a_failed_run(
    phone: AdbDevice, make_run: MakeRun, tmp_path: Path
) -> None:
    package = make_package(GOOD, expected=np.zeros((4, 3), dtype=np.float32))
    result = run_package(phone, make_run(package), NEVER)
    with pytest.raises(NnfarmError, match=r"shape \(4, 2\), \(4, 3\) expected") as caught:
        measure(package, result, tmp_path)
    assert caught.value.code == "run.failed"


@pytest.mark.parametrize("name", ["../escape", "a/b", "", "-x", ".", "a b"])
def test_names_that_are_paths_are_refused(phone: AdbDevice, make_run: MakeRun, name: str) -> None:
    run = make_run(make_package())
    run.parts[name] = run.inputs
    with pytest.raises(NnfarmError) as caught:
        run_package(phone, run, NEVER)
    assert caught.value.code == "run.bad_package"


def test_a_new_bundle_replaces_the_old_one(
    phone: AdbDevice, make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run(make_package())
    run_package(phone, run, NEVER)
    (tmp_path / "runtime" / "linux-x86_64" / "bundle.json").write_text("{}")
    newer = find_bundle(tmp_path / "runtime", Abi.X86_64, virtual=True)
    assert newer.id != run.bundle.id
    run_package(phone, replace(run, bundle=newer), NEVER)
    assert on_phone(phone, "ls bundles") == [f"linux-x86_64.{newer.id}"]
