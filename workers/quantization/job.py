"""What a quantize job gets."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from service.contracts.quantization import QuantizeSpec


class QuantizeInput(BaseModel):
    """job.json: what the worker puts into the child's folder. The spec's token is blank."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())

    spec: QuantizeSpec
    model_path: Path
    dataset_path: Path
