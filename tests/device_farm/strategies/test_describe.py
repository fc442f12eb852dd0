from __future__ import annotations

from pathlib import Path

import pytest

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import AdbServer
from device_farm.protocols.device import DeviceLostError
from device_farm.resources.bundles import MissingBundleError, find_bundle
from device_farm.strategies.describe import describe
from device_farm.strategies.recovery import recover
from service.contracts.targets import Abi, CpuVariant
from tests.device_farm.conftest import MakePhone
from tests.device_farm.stand_in import make_runtime_dir


def test_a_phone_is_described_by_its_properties_and_the_probe(
    phone: AdbDevice, tmp_path: Path
) -> None:
    found = describe(phone, "label@farm", make_runtime_dir(tmp_path / "runtime"))
    assert found.serial == "label@farm"
    assert found.name == "virtual-no-nnapi-x86_64"
    assert found.abis == (Abi.X86_64,)
    assert (found.sdk_level, found.feature_level, found.simulated) == (35, 4, True)
    assert [(a.name, a.type, a.feature_level) for a in found.accelerators] == [
        ("npu", "accelerator", 4)
    ]
    assert found.cpu_variants == (CpuVariant.AVX2,)
    assert found.reason_unusable == ""


def test_a_missing_bundle_is_told_with_the_way_to_build_it(
    phone: AdbDevice, tmp_path: Path
) -> None:
    found = describe(phone, "x", tmp_path)
    assert "python -m device_farm.runtime.build linux-x86_64" in found.reason_unusable
    assert found.abis == (Abi.X86_64,)


def test_a_real_phone_needs_the_ndk(tmp_path: Path) -> None:
    with pytest.raises(MissingBundleError, match=r"ANDROID_NDK_HOME.*android-arm64-v8a"):
        find_bundle(tmp_path, Abi.ARM64_V8A, virtual=False)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("sdk=35", "sdk=26", "Android API 26"),
        ("abilist=x86_64", "abilist=mips,riscv64", "none of its ABIs"),
        ("virtual=1", "virtual=0", "ANDROID_NDK_HOME"),
    ],
)
def test_unusable_phones_say_why(
    make_phone: MakePhone, tmp_path: Path, old: str, new: str, reason: str
) -> None:
    phone = make_phone()
    phone.run(f"sed -i s/{old}/{new}/ system/build.prop", timeout_s=10)
    found = describe(phone, "x", make_runtime_dir(tmp_path / "runtime"))
    assert reason in found.reason_unusable


def test_a_runner_that_does_not_start_is_told(phone: AdbDevice, tmp_path: Path) -> None:
    runtime = make_runtime_dir(tmp_path / "runtime")
    (runtime / "linux-x86_64" / "nnfarm_runner").write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    assert describe(phone, "x", runtime).reason_unusable == (
        "the runner's probe failed with code 1: broken"
    )


def test_a_phone_that_is_gone_is_recovered_or_marked(
    make_phone: MakePhone, adb_server: AdbServer, tmp_path: Path
) -> None:
    phone = make_phone()
    adb_server.disconnect(phone.serial)
    with pytest.raises(DeviceLostError):
        describe(phone, "x", tmp_path)
    assert recover(phone) == ""
    assert recover(AdbDevice(adb_server, "127.0.0.1:1")) == (
        "does not answer after 2 new connections"
    )
