from __future__ import annotations

from pathlib import Path

import pytest

from device_farm.virtual_phone.profile import (
    PROFILES_DIR,
    ProfileError,
    find_profile,
    load_profile,
    profile_names,
)

LEVEL4 = (PROFILES_DIR / "virtual-level4-x86_64.toml").read_text()


@pytest.mark.parametrize("name", profile_names())
def test_shipped_profiles_are_valid_and_named_as_their_files(name: str) -> None:
    profile = find_profile(name)
    assert profile.name == name
    assert profile.description
    assert (PROFILES_DIR / f"{name}.toml").read_text().startswith("# ")


def test_the_shipped_levels() -> None:
    levels = {find_profile(name).feature_level for name in profile_names()}
    assert levels == set(range(9))


def test_renders_the_simulators_file(tmp_path: Path) -> None:
    text = LEVEL4.replace(
        "feature_level = 4\n\n[latency]",
        'feature_level = 4\ndeny_operations = ["SOFTMAX"]\n\n[latency]',
    )
    path = tmp_path / "p.toml"
    path.write_text(text)
    assert load_profile(path).render() == (
        "feature_level 4\n"
        "device sim-npu accelerator 1.0 4\n"
        "deny sim-npu SOFTMAX\n"
        "latency per_execution_us 150\n"
        "latency per_operation_us 4\n"
        "latency macs_per_us 200000\n"
        "latency bytes_per_us 8000\n"
        "latency compile_per_operation_us 0\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("sdk_level = 30", "sdk_levle = 30", "sdk_levle: unknown key"),
        ("percent = 80", "percent = 80\nvolts = 4", "battery.volts: unknown key"),
        ("percent = 80", "percent = 180", "battery.percent: "),
        ('type = "accelerator"', 'type = "npu"', "device.0.type: "),
        ('name = "sim-npu"', 'name = "sim npu"', "device.0.name: "),
        ("feature_level = 4\n\n[[", "feature_level = 9\n\n[[", "feature_level: "),
        ("feature_level = 4\n\n[[", "feature_level = 0\n\n[[", "device: a phone without NNAPI"),
        ('abi = "x86_64"', 'abi = "armeabi-v7a"', "abi: virtual phones are"),
        ('abi = "x86_64"', 'abi = "mips"', "abi: "),
        ("[battery]", "[battery", "not TOML"),
    ],
)
def test_bad_profiles_are_refused_with_the_key(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    assert LEVEL4.count(old) == 1
    path = tmp_path / "p.toml"
    path.write_text(LEVEL4.replace(old, new))
    with pytest.raises(ProfileError, match=complaint):
        load_profile(path)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ProfileError, match="virtual-level4-x86_64"):
        find_profile("virtual-level99")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"gone\.toml: cannot be read"):
        find_profile(str(tmp_path / "gone.toml"))


def test_limits_quirks_and_heat_reach_the_simulator(tmp_path: Path) -> None:
    text = LEVEL4.replace(
        "feature_level = 4\n\n[latency]",
        'feature_level = 4\ndeny_types = ["TENSOR_FLOAT16"]\nmax_rank = 3\n'
        'quirks = { fail_operations = ["SOFTMAX"], crash_at_run = 2, ignore_cache = true }\n'
        "[thermal]\nthrottle_after_us = 10000000\nslowdown = 1.5\n\n[latency]",
    )
    path = tmp_path / "p.toml"
    path.write_text(text)
    lines = load_profile(path).render().splitlines()
    assert lines[2:7] == [
        "deny_type sim-npu TENSOR_FLOAT16",
        "max_rank sim-npu 3",
        "quirk sim-npu fail SOFTMAX",
        "quirk sim-npu crash_at_run 2",
        "quirk sim-npu ignore_cache 1",
    ]
    assert lines[-2:] == ["thermal throttle_after_us 10000000", "thermal slowdown 1.5"]
