"""The coverage benchmark counts as one would by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from benchmarks.coverage import Row, measure
from benchmarks.coverage_peers import Coverage
from tests.workers.onnx_models import make_model, weights


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Conv, Relu, Atan (no NNAPI path has it), Conv: two convolutions of 8 x 8 x 4 x 27 and 36."""
    nodes = [
        helper.make_node("Conv", ["x", "v", "b"], ["1"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["1"], ["2"], name="relu"),
        helper.make_node("Atan", ["2"], ["3"], name="atan"),
        helper.make_node("Conv", ["3", "w", "b"], ["y"], name="last", pads=[1, 1, 1, 1]),
    ]
    constants = {"v": weights(4, 3, 3, 3), "w": weights(4, 4, 3, 3), "b": weights(4)}
    path = tmp_path / "network.onnx"
    onnx.save(make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], constants), path)
    return path


def test_each_path_is_counted_in_its_own_units(network: Path) -> None:
    (row,) = measure("network", network, [4])
    assert row.nnfarm == Coverage(3, 4, 1.0, 2)
    assert row.tvm == Coverage(5, 6, 1.0, 2)  # an addition for each bias
    assert row.ort == Coverage(3, 4, 1.0, 2)
    assert row.behind() == []
    (sentence,) = row.reasons
    assert sentence.startswith("Atan: ")


@pytest.mark.parametrize(
    ("peer", "is_behind"),
    [
        (Coverage(9, 10, 1.0, 2), False),
        (Coverage(10, 10, 1.0, 2), True),  # more operations
        (Coverage(9, 10, 1.0, 1), True),  # fewer subgraphs for the same
        (Coverage(8, 10, 0.9, 1), False),  # fewer subgraphs for less
        (Coverage(95, 100, 1.0, 9), False),  # a larger share of smaller units, and more is left
    ],
)
def test_behind_is_a_larger_share_or_fewer_subgraphs(peer: Coverage, is_behind: bool) -> None:
    row = Row("network", 4, Coverage(9, 10, 1.0, 2), None, peer)
    assert bool(row.behind()) is is_behind


def test_one_json_document_is_printed(network: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.coverage", "--json", "--levels", "1,7", network]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(result.stdout)["rows"]
    assert [row["feature_level"] for row in rows] == [1, 7]
    assert rows[0]["nnfarm"]["operations"] == 4
