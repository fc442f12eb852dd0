"""The node tests of the `onnx` package through the importer: taken, or refused with a reason.

What a network holds as a constant is one here: of a case's inputs the first stays an input. Of each
operation a few cases are imported, and the first that is taken is built and compared.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from service.contracts.errors import NnfarmError
from service.resources.models.onnx_model import inspect_onnx
from tests.workers.frontends.hosts import on_host
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise

CASES_PER_OPERATION = 2

# Operation -> codes of its refusals; regenerate by what the test's failure prints.
EXPECTED: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "onnx_sweep.json").read_text("utf-8")
)

NOT_COMPUTED = {
    "Shape": "a graph of nothing but a constant",
    "RMSNormalization": "over all axes it builds only as the pipeline simplifies it",
    # the package gives messages instead of arrays
    "Cast": "its data is not in arrays",
    "CastLike": "its data is not in arrays",
}
"""Taken, and not compared, with the reason."""


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Any]]:
    """A few cases of each operation, those the package has first."""
    found: dict[str, list[Any]] = defaultdict(list)
    with np.errstate(all="ignore"):
        collected = collect_testcases(None)
    for case in collected:
        nodes = case.model.graph.node
        if len(nodes) == 1 and "_expanded" not in case.name:
            group = found[nodes[0].op_type]
            if len(group) < CASES_PER_OPERATION:
                group.append(case)
    return dict(found)


def as_in_a_network(case: Any) -> tuple[onnx.ModelProto, list[Any], list[Any]]:
    """The model with all but its first input constant, that input, and the outputs wanted."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    (inputs, outputs), *_ = case.data_sets
    model.ir_version = max(model.ir_version, 8)  # before 4, constants had to be inputs, too
    kept = list(model.graph.input[:1])
    for value, array in zip(model.graph.input[1:], inputs[1:], strict=False):
        if isinstance(array, np.ndarray | np.generic):
            constant = numpy_helper.from_array(np.asarray(array), value.name)
            model.graph.initializer.append(constant)
        else:
            kept.append(value)
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, list(inputs[:1]), list(outputs)


def outcomes(group: list[Any], path: Path) -> Iterator[str]:
    """Codes of refusals; anything but an `NnfarmError` is a crash and fails the test."""
    for case in group:
        model, _, _ = as_in_a_network(case)
        onnx.save(model, path)
        try:
            inspect_onnx(path)
            normalise(import_onnx(path).graph)
        except NnfarmError as error:
            yield error.code


def test_every_operation_is_taken_or_refused_with_a_reason(
    cases: dict[str, list[Any]], tmp_path: Path
) -> None:
    path = tmp_path / "case.onnx"
    refused = {op: sorted(set(outcomes(group, path))) for op, group in sorted(cases.items())}
    found = {op: codes for op, codes in refused.items() if codes}
    assert found == EXPECTED, json.dumps(found)


def test_what_is_taken_gives_the_numbers_of_onnx(
    cases: dict[str, list[Any]], tmp_path: Path
) -> None:
    path = tmp_path / "case.onnx"
    wrong: dict[str, str] = {}
    compared = 0
    for op, group in cases.items():
        if op in EXPECTED or op in NOT_COMPUTED:
            continue
        model, inputs, wanted = as_in_a_network(group[0])
        onnx.save(model, path)
        try:
            found = on_host(import_onnx(path).graph)(*inputs)
            for mine, theirs in zip(found, wanted, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)
        except Exception as error:
            wrong[op] = str(error)[:200]
        compared += 1
    assert wrong == {}
    assert compared > 80
