"""The table of NNAPI operations (opset.toml) as typed objects."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class OperationSpec:
    """One operation of NNAPI.

    Attributes:
        name: ANEURALNETWORKS_<name>.
        code: OperationCode.
        level: feature level that introduced it.
        required: roles of the inputs that must be there, in order; a repeated role ends in "*".
        optional: roles that may follow.
        types: element type of the first tensor -> least feature level.
        rank: least and most rank of the first tensor.
    """

    name: str
    code: int
    level: int
    required: tuple[str, ...]
    optional: tuple[str, ...]
    types: Mapping[str, int]
    rank: tuple[int, int]


@cache
def opset() -> Mapping[str, OperationSpec]:
    """All operations by name."""
    table = tomllib.loads(Path(__file__).with_name("opset.toml").read_text("utf-8"))
    return {name: _spec(name, entry) for name, entry in table.items()}


def _spec(name: str, entry: Mapping[str, Any]) -> OperationSpec:
    required: list[str] = []
    optional: list[str] = []
    for role in entry["inputs"]:
        if role == "*":
            required[-1] += "*"
        elif role.endswith("?"):
            optional.append(role[:-1])
        elif optional:
            raise ValueError(f"{name}: required role {role!r} behind an optional one")
        else:
            required.append(role)
    low, high = entry["rank"]
    return OperationSpec(
        name=name,
        code=int(entry["code"]),
        level=int(entry["level"]),
        required=tuple(required),
        optional=tuple(optional),
        types=dict(entry["types"]),
        rank=(int(low), int(high)),
    )
