"""Which of a package's codes for the CPU the runner takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def variants(package: Any) -> Any:
    """A package with its twin once more for this machine, and for one that is not built yet."""
    own = linux_flags()[-1]
    twin = next(part for part in package.manifest["parts"] if part["role"] == "cpu_twin")
    for name, features in (("avx2", [own]), ("avx512", [own, "cold-fusion"])):
        path = f"model_cpu.{name}.so"
        (package.folder / path).write_bytes((package.folder / "model_cpu.so").read_bytes())
        more = {"path": path, "cpu_variant": name, "cpu_features": features}
        package.manifest["parts"].append(twin | more)
    twin |= {"cpu_variant": None, "cpu_features": []}
    package.write_manifest()
    return package


def linux_flags() -> list[str]:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith("flags")).split(":")[1].split()


@pytest.mark.parametrize(
    ("options", "library", "variant"),
    [
        ((), "model_cpu.avx2.so", "avx2"),
        (("--cpu-variant", "auto"), "model_cpu.avx2.so", "avx2"),
        (("--cpu-variant", "avx2"), "model_cpu.avx2.so", "avx2"),
        (("--cpu-variant", "baseline"), "model_cpu.so", None),
    ],
)
def test_the_last_code_that_the_processor_can_run(
    run: Any, variants: Any, options: tuple[str, ...], library: str, variant: str | None
) -> None:
    result = run("--package", variants.folder, "--mode", "cpu", *options)
    assert result.exit_code == 0
    loaded = result.one("loaded")
    assert (loaded["library"], loaded.get("cpu_variant")) == (library, variant)


def test_a_fallback_takes_the_same_code(run: Any, variants: Any) -> None:
    result = run("--package", variants.folder, FAULT_FAIL="ANeuralNetworksExecution_burstCompute=4")
    assert result.exit_code == 0
    assert result.one("end")["engine"] == "cpu"
    assert result.all("loaded")[-1]["library"] == "model_cpu.avx2.so"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("avx512", "avx512 needs cold-fusion, which this processor lacks"),
        ("dotprod", 'the package has no code for "dotprod"'),
    ],
)
def test_a_variant_that_cannot_be_had_is_refused(
    run: Any, variants: Any, wanted: str, words: str
) -> None:
    result = run("--package", variants.folder, "--mode", "cpu", "--cpu-variant", wanted)
    assert result.exit_code == 2
    assert words in result.one("error")["detail"]


def test_a_probe_tells_the_features(run: Any) -> None:
    assert run("--probe").one("cpu")["features"] == linux_flags()
