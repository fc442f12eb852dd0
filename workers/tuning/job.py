"""What a tune job gets."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from service.contracts.tuning import TuneSpec


class TuneInput(BaseModel):
    """job.json: what the worker puts into the child's folder. The spec's token is blank."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())

    spec: TuneSpec
    model_path: Path
    stub_dir: Path
