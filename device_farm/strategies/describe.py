"""Finds out what a phone is: its properties, then a probe of its NNAPI by the runner."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from device_farm.protocols.device import (
    DeviceProtocol,
    DeviceTimeoutError,
    TransferError,
)
from device_farm.resources.bundles import (
    RUNNER,
    MissingBundleError,
    RuntimeBundle,
    find_bundle,
)
from device_farm.strategies.device_store import DeviceStore, with_libraries
from device_farm.strategies.runner_events import CpuEvent, NnapiEvent, RunnerEvents
from service.contracts.devices import DeviceDescription
from service.contracts.targets import CPU_REQUIREMENTS, Abi, CpuVariant

_PROBE_TIMEOUT_S = 60.0
_LEAST_SDK_LEVEL = 27


def describe(device: DeviceProtocol, serial: str, runtime_dir: Path) -> DeviceDescription:
    """Describes a phone that is connected.

    Args:
        device: the phone.
        serial: the name it is announced under.
        runtime_dir: where the runtime bundles are.

    Returns:
        The description; `reason_unusable` says why it cannot be used, where it cannot.

    Raises:
        DeviceLostError: the phone went away.
    """
    properties = device.properties()
    virtual = properties.get("ro.nnfarm.virtual") == "1"
    abis = _abis(properties)
    description = DeviceDescription(
        serial=serial,
        name=properties.get("ro.product.name") or serial,
        model=properties.get("ro.product.model", ""),
        abis=abis,
        sdk_level=int(properties.get("ro.build.version.sdk") or 0),
        feature_level=0,
        simulated=virtual,
    )
    if not abis:
        return _unusable(description, "none of its ABIs is one nnfarm compiles for")
    if description.sdk_level < _LEAST_SDK_LEVEL:
        return _unusable(description, f"Android API {description.sdk_level}, 27 is the least")
    bundles, missing = _bundles(abis, runtime_dir, virtual)
    if not bundles:
        return _unusable(description, missing)
    try:
        events, nnapi = _probe(device, next(iter(bundles.values())))
    except (TransferError, DeviceTimeoutError, ProbeError) as error:
        return _unusable(description, str(error))
    return description.model_copy(
        update={
            "abis": tuple(bundles),  # what it can be asked to run
            "feature_level": nnapi.feature_level,
            "accelerators": nnapi.devices,
            "cpu_variants": _variants(next(iter(bundles)), events.cpu),
        }
    )


class ProbeError(Exception):
    """The runner could not tell about the phone's NNAPI."""


def _abis(properties: Mapping[str, str]) -> tuple[Abi, ...]:
    listed = properties.get("ro.product.cpu.abilist") or properties.get("ro.product.cpu.abi", "")
    known = {abi.value for abi in Abi}
    return tuple(Abi(name) for name in listed.split(",") if name in known)


def _bundles(
    abis: tuple[Abi, ...], runtime_dir: Path, virtual: bool
) -> tuple[dict[Abi, RuntimeBundle], str]:
    bundles: dict[Abi, RuntimeBundle] = {}
    reasons = []
    for abi in abis:
        try:
            bundles[abi] = find_bundle(runtime_dir, abi, virtual=virtual)
        except MissingBundleError as error:
            reasons.append(str(error))
    return bundles, reasons[0] if reasons else ""


def _variants(abi: Abi, cpu: CpuEvent | None) -> tuple[CpuVariant, ...]:
    """What the processor has the features for; runners of old bundles tell none."""
    had = set(cpu.features if cpu else ())
    return tuple(
        variant
        for variant, needs in CPU_REQUIREMENTS.items()
        if needs.abi is abi and had.issuperset(needs.features)
    )


def _probe(device: DeviceProtocol, bundle: RuntimeBundle) -> tuple[RunnerEvents, NnapiEvent]:
    folder = DeviceStore(device).put_bundle(bundle)
    events = RunnerEvents()
    result = device.run(
        with_libraries(folder, f"{shlex.quote(f'{folder}/{RUNNER}')} --probe"),
        timeout_s=_PROBE_TIMEOUT_S,
        on_line=events.feed,
    )
    if result.exit_code or events.nnapi is None:
        words = result.stderr.strip().splitlines()[-1:] or events.bad_lines[-1:] or ["no event"]
        raise ProbeError(f"the runner's probe failed with code {result.exit_code}: {words[0]}")
    return events, events.nnapi


def _unusable(description: DeviceDescription, reason: str) -> DeviceDescription:
    return description.model_copy(update={"reason_unusable": reason})
