"""Options of a compilation: which nodes are offloaded, and how precisely they are computed."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from service.contracts.artifacts import OperationPlacement
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOptions, Precision
from tests.workers.onnx_models import make_model, weights
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.graph.graph import Graph
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import Partition, partition

LEVEL = 4


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Three matrix products in a row, named a, b and c, then an operation NNAPI does not have."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["1"], name="a"),
        helper.make_node("MatMul", ["1", "w"], ["2"], name="b"),
        helper.make_node("MatMul", ["2", "w"], ["3"], name="c"),
        helper.make_node("Sinh", ["3"], ["y"], name="d"),
    ]
    model = make_model(nodes, {"x": [3, 4]}, ["y"], {"w": weights(4, 4)})
    onnx.save(model, tmp_path / "chain.onnx")
    return normalise(import_onnx(tmp_path / "chain.onnx").graph)


def split(graph: Graph, options: CompileOptions) -> Partition:
    return partition(graph, NnapiBackend(options.precision), LEVEL, options)


def offloaded(found: Partition) -> list[str]:
    nodes = found.report.operations
    return [node.name for node in nodes if node.placement is OperationPlacement.NNAPI]


def test_an_excluded_node_stays_on_the_cpu_and_says_why(graph: Graph) -> None:
    found = split(graph, CompileOptions(exclude_nodes=("b",)))
    assert offloaded(found) == ["a", "c"]
    assert found.report.subgraph_count == 2
    rejection = found.report.operations[1].rejection
    assert rejection is not None
    assert (rejection.code, rejection.sentence) == ("nnapi.excluded", "b was excluded by option.")


def test_only_named_nodes_are_offloaded(graph: Graph) -> None:
    assert offloaded(split(graph, CompileOptions(only_nodes=("b", "c")))) == ["b", "c"]


def test_small_subgraphs_are_handed_back(graph: Graph) -> None:
    found = split(graph, CompileOptions(exclude_nodes=("b",), min_subgraph_ops=2))
    assert offloaded(found) == []
    assert found.regions == ()
    rejection = found.report.operations[0].rejection
    assert rejection is not None
    assert rejection.code == "nnapi.small_subgraph"
    assert offloaded(split(graph, CompileOptions(min_subgraph_ops=3))) == ["a", "b", "c"]


@pytest.mark.parametrize("option", ["exclude_nodes", "only_nodes"])
def test_an_unknown_node_is_an_error_that_names_it(graph: Graph, option: str) -> None:
    with pytest.raises(NnfarmError, match="nowhere") as caught:
        split(graph, CompileOptions(**{option: ("a", "nowhere")}))
    assert caught.value.code == "compile.bad_option"


def test_the_report_counts_multiply_accumulates_and_bytes(graph: Graph) -> None:
    report = split(graph, CompileOptions(exclude_nodes=("b",))).report
    assert [node.macs for node in report.operations] == [48, 48, 48, 0]
    # 3x4 in, 4x4 weights, 3x4 out, four bytes each.
    assert [node.size_bytes for node in report.operations[:3]] == [160, 160, 160]
    assert (report.macs, report.offloaded_macs) == (144, 96)
    assert report.offloaded_bytes == 320


@pytest.mark.parametrize(
    ("precision", "used"),
    [
        (Precision.FLOAT32, ["float32"] * 4),
        (Precision.RELAXED, ["float32", "relaxed", "relaxed", "relaxed"]),
        (Precision.FLOAT16, ["float32", "relaxed", "float16", "float16"]),
    ],
)
def test_precision_is_the_nearest_that_a_level_has(precision: Precision, used: list[str]) -> None:
    backend = NnapiBackend(precision)
    assert [backend.precision_at(level) for level in (1, 2, 3, 4)] == used
