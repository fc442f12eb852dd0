"""A stand-in for nnfarm_runner: a script that lets each test's package say what happens.

It speaks docs/reference/runner.md and runs the package's `model.so`, here a shell script, in the
place of a model. For the agent's own behaviour; the real runner has its own end-to-end test.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from device_farm.resources.bundles import RuntimeBundle, find_bundle
from device_farm.strategies.device_store import StoredPart
from service.contracts.artifacts import Manifest, Part, PartRole
from service.contracts.targets import Abi
from service.contracts.tensors import DType, ModelSignature, TensorSpec

RUNNER = """#!/bin/sh
echo '{"event": "start", "runner": "stand-in", "target": "linux-x86_64", "pid": '$$'}'
nnapi() {
    echo '{"event": "nnapi", "available": true, "feature_level": 4, "devices": [
      {"name": "npu", "type": "accelerator", "version": "1.0", "feature_level": 4}]}' | tr -d '\\n'
    echo
}
cpu() { echo '{"event": "cpu", "features": ["sse4_2", "f16c", "fma", "avx2", "avx512f"]}'; }
[ "$1" = --probe ] && { cpu; nnapi; exit 0; }
while [ $# -gt 0 ]; do
    [ "$1" = --compile-times ] && { compile_times=yes; shift; continue; }
    case "$1" in
        --package) package=$2 ;;
        --inputs) inputs=$2 ;;
        --outputs) outputs=$2 ;;
        --iterations) iterations=$2 ;;
        --cache-dir) cache=$2 ;;
        --crash-record|--warmup|--min-duration-ms|--max-iterations) ;;
        *) echo "usage: $1" >&2; exit 2 ;;
    esac
    shift 2
done
[ -f "$package/manifest.json" ] || exit 3
[ -n "$compile_times" ] && { mkdir "$cache" || exit 2; }
. "$package/model.so"
"""

GOOD = """
nnapi
echo '{"event": "loaded", "library": "model.so", "load_us": 10.5, "cpu_variant": "avx2"}'
echo '{"event": "subgraph", "symbol": "s0", "compile_us": 20, "operations": 3, "devices": ["npu"]}'
[ -n "$compile_times" ] && echo '{"event": "compile_times", "cold_us": 22, "cached_us": 3}'
echo '{"event": "first_run", "us": 30}'
echo '{"event": "latency", "samples_us": [100, 102, 101]}'
cp "$inputs" "$outputs" || exit 7
echo '{"event": "outputs", "samples": 4, "file": "outputs.safetensors"}'
echo '{"event": "memory", "peak_rss_bytes": 1000000}'
echo "a log line" >&2
echo '{"event": "end", "engine": "nnapi"}'
"""

SAMPLES = np.array([[1, 2], [4, 3], [5, 6], [8, 7]], dtype=np.float32)
SIGNATURE = ModelSignature(
    inputs=(TensorSpec(name="y", dtype=DType.FLOAT32, shape=(2,)),),
    outputs=(TensorSpec(name="y", dtype=DType.FLOAT32, shape=(2,)),),
)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Package:
    """A package whose model is a shell script, and its evaluation set, as blobs by hash."""

    manifest: Manifest
    blobs: dict[str, bytes]
    inputs_sha256: str
    expected_sha256: str

    def stored(self, sha: str, folder: Path) -> StoredPart:
        path = folder / sha
        path.write_bytes(self.blobs[sha])
        return StoredPart(sha, path)


def make_package(script: str = GOOD, expected: np.ndarray = SAMPLES) -> Package:
    library = script.encode()
    inputs, wanted = save({"y": SAMPLES}), save({"y": expected})
    manifest = Manifest(
        model_sha256=sha256(b"model"),
        model_name="stand-in",
        feature_level=4,
        needed_level=1,
        abi=Abi.X86_64,
        signature=SIGNATURE,
        subgraph_count=1,
        offloaded_count=3,
        operation_count=3,
        parts=(
            Part(
                role=PartRole.LIBRARY,
                path="model.so",
                sha256=sha256(library),
                size_bytes=len(library),
            ),
        ),
        versions={},
        options={},
    )
    blobs = {sha256(data): data for data in (library, inputs, wanted)}
    return Package(manifest, blobs, sha256(inputs), sha256(wanted))


def make_runtime_dir(folder: Path) -> Path:
    target = folder / "linux-x86_64"
    target.mkdir(parents=True)
    (target / "nnfarm_runner").write_text(RUNNER)
    (target / "nnfarm_runner").chmod(0o755)
    describe_bundle(target, {"nnfarm_runner": "stand-in"})
    return folder


def describe_bundle(folder: Path, versions: dict[str, str]) -> None:
    """Writes the bundle.json of a folder with a runner."""
    digests = {"nnfarm_runner": sha256((folder / "nnfarm_runner").read_bytes())}
    description = {"format": "nnfarm.runtime", "target": folder.name, "versions": versions}
    (folder / "bundle.json").write_text(json.dumps({**description, "sha256": digests}))


def make_bundle(folder: Path) -> RuntimeBundle:
    return find_bundle(make_runtime_dir(folder), Abi.X86_64, virtual=True)
