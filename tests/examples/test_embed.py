"""examples/embed, built by the host's C compiler, on the digits model and the simulator."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from device_farm.native.toolchain import find_tool
from service.contracts.jobs import CompileOptions, CompileOutcome, JobSpec
from workers.pipeline import child

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DIGITS = EXAMPLES / "digits"
TIMEOUT_S = 120

pytestmark = pytest.mark.gcc


@pytest.fixture
def package(tmp_path: Path, player_library: Path) -> Path:
    """The digits model compiled for the accelerator of a phone of level 4."""
    job_folder, package = tmp_path / "job", tmp_path / "package"
    job_folder.mkdir()
    package.mkdir()
    model = DIGITS / "digits.onnx"
    spec = JobSpec(
        compilation_id="cmp_test",
        attempt=1,
        job_token="",
        model_name=model.name,
        model_format="onnx",
        model_sha256=hashlib.sha256(model.read_bytes()).hexdigest(),
        model_size_bytes=model.stat().st_size,
        dataset_sha256=None,
        targets=[{"feature_level": 4, "abi": "x86_64"}],
        options=CompileOptions(),
    )
    job = {
        "spec": spec.model_dump(mode="json"),
        "model_path": str(model),
        "dataset_path": None,
        "stub_dir": str(player_library.parents[2] / "worker-tests" / "toolchain"),
        "player_library": str(player_library),
    }
    (job_folder / "job.json").write_text(json.dumps(job))
    assert child.main(job_folder) == 0
    outcome = CompileOutcome.model_validate_json((job_folder / "outcome.json").read_text())
    manifest = outcome.artifacts[0].manifest
    (package / "manifest.json").write_text(manifest.model_dump_json())
    for part in manifest.parts:
        (package / part.path).symlink_to(job_folder / "blobs" / part.sha256)
    return package


@pytest.fixture
def classify(tmp_path: Path, player_library: Path) -> Path:
    """The example, built as its README says."""
    build = tmp_path / "build"
    cmake = find_tool("cmake")
    bundle = f"-DNNFARM_BUNDLE={player_library.parent}"
    configure = [cmake, "-S", EXAMPLES / "embed", "-B", build, bundle]
    for command in (configure, [cmake, "--build", build]):
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
    return build / "classify"


def test_the_example_classifies_on_the_accelerator(
    classify: Path, package: Path, simulator_dir: Path, tmp_path: Path
) -> None:
    with np.load(DIGITS / "digits_test.npz", allow_pickle=False) as data:
        images, labels = data["image"], data["labels"]
    (tmp_path / "images.f32").write_bytes(images.tobytes())
    # Names Android's linker gives to the C library; a phone has them.
    system = tmp_path / "system"
    system.mkdir()
    for name in ("libc", "libm"):
        (system / f"{name}.so").symlink_to(f"/lib/x86_64-linux-gnu/{name}.so.6")
    finished = subprocess.run(
        [classify, package, tmp_path / "images.f32", "preference", "low-power"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=os.environ | {"LD_LIBRARY_PATH": f"{system}:{simulator_dir}"},
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    answers = np.array([int(line) for line in finished.stdout.split()])
    assert len(answers) == len(labels)
    assert np.mean(answers == labels) >= 0.97
    explanation = json.loads(finished.stderr[finished.stderr.index("{") :])
    assert explanation["engine"] in ("nnapi", "mixed")
    assert explanation["fallback"] is None
    assert 0 < explanation["offloaded_operations"] <= explanation["operations"]
    assert len(explanation["report"]["operations"]) > 0
