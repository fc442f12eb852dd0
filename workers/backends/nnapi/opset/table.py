"""The table of NNAPI operations (the .toml files beside this one) as typed objects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_ROLE = re.compile(
    r"(?P<name>\w+) (?P<kind>[A-Za-z]\w*(\[\])?)(?P<absent>~)?"
    r"( (?P<mark>[?@*&])(?P<level>\d)?)?"
)


@dataclass(frozen=True)
class Role:
    """One operand of an operation.

    Attributes:
        name: as `ModelBuilder.add` takes it.
        kind: what the operand is; see docs/reference/nnapi-operations.md.
        level: feature level that introduced it.
        is_optional: whether the list may end before it.
        is_joined: whether it comes and goes with the role before it.
        is_repeated: whether there may be several, at least one.
        may_be_absent: whether an operand without a value may stand here.
    """

    name: str
    kind: str
    level: int
    is_optional: bool
    is_joined: bool
    is_repeated: bool
    may_be_absent: bool


@dataclass(frozen=True)
class OperationSpec:
    """One operation of NNAPI.

    Attributes:
        name: ANEURALNETWORKS_<name>.
        family: the file it stands in.
        code: OperationCode.
        level: feature level that introduced it.
        inputs: roles in order, as the compiler emits them.
        short: the other list of roles NNAPI has for it, with padding by scheme or sizes by scale.
        outputs: roles of the results.
        types: element type of the operation -> least feature level.
        results: the same for results of another type than the operation's; else empty.
        same: types it takes only to give the same type.
        rank: least and most rank of the first tensor.
        rules: level of each rule that came later than the operation.
    """

    name: str
    family: str
    code: int
    level: int
    inputs: tuple[Role, ...]
    short: tuple[Role, ...]
    outputs: tuple[Role, ...]
    types: Mapping[str, int]
    results: Mapping[str, int]
    same: Mapping[str, int]
    rank: tuple[int, int]
    rules: Mapping[str, int]


@cache
def opset() -> Mapping[str, OperationSpec]:
    """All operations by name."""
    found: dict[str, OperationSpec] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        for name, entry in tomllib.loads(path.read_text("utf-8")).items():
            if name in found:
                raise ValueError(f"{name} stands in {found[name].family} and in {path.stem}")
            found[name] = _spec(name, path.stem, entry)
    return found


def _spec(name: str, family: str, entry: Mapping[str, Any]) -> OperationSpec:
    low, high = entry["rank"]
    level = int(entry["level"])
    lists = {key: _roles(name, entry.get(key, ()), level) for key in ("inputs", "short", "outputs")}
    return OperationSpec(
        name=name,
        family=family,
        code=int(entry["code"]),
        level=level,
        inputs=lists["inputs"],
        short=lists["short"],
        outputs=lists["outputs"] or _roles(name, ["output T"], level),
        types=dict(entry["types"]),
        results=dict(entry.get("results", {})),
        same=dict(entry.get("same", {})),
        rank=(int(low), int(high)),
        rules=dict(entry.get("rules", {})),
    )


def _roles(operation: str, texts: Sequence[str], level: int) -> tuple[Role, ...]:
    roles: list[Role] = []
    for text in texts:
        match = _ROLE.fullmatch(text)
        if match is None:
            raise ValueError(f"{operation}: no role: {text!r}")
        mark, own = match["mark"] or "", int(match["level"] or level)
        if mark == "&":
            own = roles[-1].level
        role = Role(
            name=match["name"],
            kind=match["kind"],
            level=own,
            is_optional=mark in ("?", "&"),
            is_joined=mark == "&",
            is_repeated=mark == "*",
            may_be_absent=match["absent"] is not None,
        )
        if roles and roles[-1].is_optional and not role.is_optional:
            raise ValueError(f"{operation}: required role {role.name!r} behind an optional one")
        roles.append(role)
    return tuple(roles)
