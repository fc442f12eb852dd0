"""The table of operations: its own invariants, and Google's conformance examples against it.

The examples are data beside the repository (`NNFARM_CONFORMANCE` names another place); where they
are not, the table's invariants are tested alone.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.contracts.targets import MAX_FEATURE_LEVEL, MIN_FEATURE_LEVEL
from workers.backends.nnapi.operand_types import ELEMENTS, OperandType
from workers.backends.nnapi.opset import OperationSpec, opset
from workers.backends.nnapi.opset.admission import KINDS, least_level

BESIDE = Path(__file__).parents[5] / "shared" / "nnapi_conformance"
CONFORMANCE = Path(os.environ.get("NNFARM_CONFORMANCE", "") or BESIDE)
SPECS = sorted(CONFORMANCE.glob("corpus/json/*/*.json.gz"))

LAST_CODE = 105
RELAXED_LEVEL = 2
LEVELS = {"V1_0": 1, "V1_1": 2, "V1_2": 3, "V1_3": 4, "AIDL_V1": 5, "AIDL_V2": 6, "AIDL_V3": 7}

QUANTIZED = OperandType.TENSOR_QUANT8_ASYMM
FLOAT = OperandType.TENSOR_FLOAT32
INT = OperandType.INT32


def test_every_operation_code_is_there_once() -> None:
    assert sorted(spec.code for spec in opset().values()) == list(range(LAST_CODE + 1))


@pytest.mark.parametrize("spec", opset().values(), ids=lambda spec: spec.name)
def test_levels_and_kinds_are_consistent(spec: OperationSpec) -> None:
    levels = range(spec.level, MAX_FEATURE_LEVEL + 1)
    assert spec.level in range(MIN_FEATURE_LEVEL, MAX_FEATURE_LEVEL + 1)
    assert set(spec.types) | set(spec.results) | set(spec.same) <= set(ELEMENTS)
    assert not set(spec.types) & set(spec.same)
    later = (
        *spec.same.values(),
        *spec.types.values(),
        *spec.results.values(),
        *spec.rules.values(),
    )
    assert all(level in levels for level in later)
    assert not spec.types or min(spec.types.values()) == spec.level
    assert 1 <= spec.rank[0] <= spec.rank[1]
    for roles in (spec.inputs, spec.short, spec.outputs):
        assert all(role.kind in KINDS and role.level in levels for role in roles)
        assert len({role.name for role in roles}) == len(roles)
        assert sum(role.is_repeated for role in roles) <= 1


@pytest.mark.parametrize("spec", opset().values(), ids=lambda spec: spec.name)
def test_no_level_has_an_operation_of_the_wrong_operands(spec: OperationSpec) -> None:
    assert least_level(spec, [], []) is None
    assert least_level(spec, [OperandType.UINT32] * len(spec.inputs), [FLOAT]) is None


def test_optional_operands_and_types_bring_their_levels() -> None:
    conv = opset()["CONV_2D"]
    plain = [FLOAT] * 3 + [INT] * 7
    assert least_level(conv, plain, [FLOAT]) == 1
    assert least_level(conv, [FLOAT] * 3 + [INT] * 4, [FLOAT]) == 1  # padding by scheme
    assert least_level(conv, [*plain, OperandType.BOOL], [FLOAT]) == 3
    assert least_level(conv, [*plain, OperandType.BOOL, INT], [FLOAT]) is None
    assert least_level(conv, [*plain, OperandType.BOOL, INT, INT], [FLOAT]) == 3
    half = OperandType.TENSOR_FLOAT16
    assert least_level(conv, [half] * 3 + [INT] * 7, [half]) == 3
    by_channel = [QUANTIZED, OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL, OperandType.TENSOR_INT32]
    assert least_level(conv, [*by_channel, *[INT] * 7], [QUANTIZED]) == 3
    assert least_level(conv, [FLOAT, QUANTIZED, FLOAT, *[INT] * 7], [FLOAT]) is None
    cast, truth = opset()["CAST"], OperandType.TENSOR_BOOL8
    assert least_level(cast, [FLOAT], [OperandType.TENSOR_INT32]) == 3
    assert least_level(cast, [truth], [truth]) == 4
    assert least_level(cast, [truth], [FLOAT]) is None
    assert least_level(cast, [FLOAT], [truth]) is None
    pack = opset()["PACK"]
    assert least_level(pack, [INT, FLOAT, FLOAT, FLOAT], [FLOAT]) == 6
    assert least_level(pack, [INT], [FLOAT]) is None


def _examples(path: Path) -> Iterator[Mapping[str, Any]]:
    with gzip.open(path) as file:
        yield from (e for e in json.load(file) if not e["expectFailure"])


def _type(operand: Mapping[str, Any]) -> OperandType | None:
    if operand["lifetime"] == "NO_VALUE":
        return None
    return OperandType[operand["type"]]


def _level_by_rule(
    name: str, inputs: Sequence[Mapping[str, Any]], output: Mapping[str, Any]
) -> int:
    """The level of the rules that are about values, shapes and scales, not about types."""
    rules, first = opset()[name].rules, inputs[0]
    rank = len(first["dims"])
    holds = {
        "different_scales": any(i["scale"] != output["scale"] for i in inputs[:-1]),
        "free_output_scale": first["scale"] * inputs[1]["scale"] >= output["scale"] > 0
        if len(inputs) > 1
        else False,
        "ranks_other_than_4": rank != 4,
        "ranks_other_than_2_and_4": rank not in (2, 4),
    }
    return max((rules[rule] for rule, on in holds.items() if on and rule in rules), default=1)


def _level_of(example: Mapping[str, Any]) -> int:
    level = RELAXED_LEVEL if example["relaxed"] else 1
    for graph in example["subgraphs"]:
        operands = graph["operands"]
        for operation in graph["operations"]:
            inputs = [operands[i] for i in operation["ins"]]
            outputs = [operands[i] for i in operation["outs"]]
            spec = opset()[operation["op"]]
            own = least_level(spec, [_type(o) for o in inputs], [_type(o) for o in outputs])
            assert own is not None, f"{example['name']}: {spec.name} is not in the table like this"
            level = max(level, own, _level_by_rule(spec.name, inputs, outputs[0]))
    return level


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_conformance_examples_are_admitted_at_their_level_and_not_before(path: Path) -> None:
    newest = LEVELS[path.parent.name.removesuffix("_cts_only")]
    for example in _examples(path):
        level = _level_of(example)
        # Where an example names no least version, its folder is the version that brought it.
        least = LEVELS.get(example["minSupportedVersion"], 1)
        assert least <= level <= newest, example["name"]
