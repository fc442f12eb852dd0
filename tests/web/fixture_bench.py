"""The fixture's clock, its four virtual phones and the artifacts of the finished compilation."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from fixture_graph import explain

from service.contracts.artifacts import Manifest, Part, PartRole
from service.contracts.devices import Accelerator, DeviceDescription, DeviceState
from service.contracts.targets import Abi
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from service.resources.artifacts.schemas import Artifact
from service.resources.devices.schemas import Device

DONE = "cmp_done"
LEVELS = (1, 2, 3, 4, 7)
ABIS = (Abi.ARM64_V8A, Abi.X86_64)
SIGNATURE = ModelSignature(
    inputs=(TensorSpec(name="spectrogram", dtype=DType.FLOAT32, shape=(1, 1, 49, 40)),),
    outputs=(TensorSpec(name="logits", dtype=DType.FLOAT32, shape=(1, 12)),),
)


STARTED = datetime.now(UTC)


def at(minutes_ago: int, later_s: int = 0) -> datetime:
    """A moment before the fixture started."""
    return STARTED - timedelta(minutes=minutes_ago) + timedelta(seconds=later_s)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _device(
    name: str, level: int, abi: Abi, state: DeviceState = DeviceState.ONLINE, reason: str = ""
) -> Device:
    accelerator = Accelerator(
        name="sim-npu", type="accelerator", version="1.0", feature_level=level
    )
    reference = Accelerator(name="nnapi-reference", type="cpu", version="1.0", feature_level=level)
    return Device(
        id=f"dev_{name}",
        name=name,
        state=state,
        agent_name="bench-1",
        last_seen_at=at(0),
        description=DeviceDescription(
            serial=f"127.0.0.1:{5600 + level}",
            name=name,
            model="nnfarm virtual phone",
            abis=(abi,),
            sdk_level=26 + level if level else 26,
            feature_level=level,
            accelerators=(accelerator, reference) if level else (),
            simulated=True,
            reason_unusable=reason,
        ),
    )


DEVICES: dict[str, Device] = {
    device.id: device
    for device in (
        _device("virtual-level1-x86_64", 1, Abi.X86_64),
        _device("virtual-level4-x86_64", 4, Abi.X86_64, DeviceState.BUSY),
        _device("virtual-level7-arm64", 7, Abi.ARM64_V8A),
        _device(
            "virtual-level0-x86_64",
            0,
            Abi.X86_64,
            DeviceState.QUARANTINED,
            "The golden run failed 3 times in a row.",
        ),
    )
}


def _artifact(level: int, abi: Abi) -> Artifact:
    report = explain(level)
    parts = tuple(
        Part(role=role, path=path, sha256=sha256(f"{path}{level}{abi}"), size_bytes=size)
        for role, path, size in (
            (PartRole.LIBRARY, "model.so", 412_000 - 21_000 * level),
            (PartRole.CPU_TWIN, "model_cpu.so", 1_320_448),
            (PartRole.WEIGHTS, "weights.bin", 820_000 + 61_000 * level),
            (PartRole.REPORT, "report.json", 14_200),
        )
    )
    return Artifact(
        id=f"art_l{level}_{abi.value.replace('-', '_')}",
        compilation_id=DONE,
        feature_level=level,
        abi=abi,
        size_bytes=sum(part.size_bytes for part in parts),
        created_at=at(12),
        manifest=Manifest(
            model_sha256=sha256("keyword-spotter"),
            model_name="keyword-spotter",
            feature_level=level,
            needed_level=min(level, 6),
            abi=abi,
            signature=SIGNATURE,
            subgraph_count=report.subgraph_count,
            offloaded_count=report.offloaded_count,
            operation_count=report.operation_count,
            parts=parts,
            versions={"apache-tvm": "0.27.0.post1", "nnfarm": "0.1.0"},
            options={},
        ),
    )


ARTIFACTS: dict[str, Artifact] = {
    artifact.id: artifact
    for artifact in (_artifact(level, abi) for abi in ABIS for level in LEVELS)
}
