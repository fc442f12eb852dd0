"""Runtime bundles: what a device needs to run packages, built once per versions and target."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from service.contracts.artifacts import Sha256

DESCRIPTION_NAME = "bundle.json"
"""The member of a bundle that describes the others."""

BundleTarget = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
BundleFile = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]


class RuntimeBundleDescription(BaseModel):
    """bundle.json, as `device_farm.runtime.build` writes it."""

    format: Literal["nnfarm.runtime"]
    target: BundleTarget = Field(examples=["android-arm64-v8a"])
    versions: dict[str, str] = Field(examples=[{"apache-tvm": "0.27.0", "nnfarm_runner": "0.1.0"}])
    sha256: dict[BundleFile, Sha256] = Field(description="Of every other file of the bundle")
