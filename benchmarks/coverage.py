"""What is offloaded of many networks, at every level, beside what two other NNAPI paths say.

    make bench-coverage
    python -m benchmarks.coverage [--networks mobilenet_v2,unet] [--levels 1,4,7] [--json]
        [--tflite FOLDER] [model.onnx ...]

Columns: nnfarm | TVM's partition_for_nnapi | ONNX Runtime's NNAPI usability checker. Each has
operations offloaded of all, in its own units (nodes of the model, Relax calls, nodes), the share of
multiply-accumulates, and subgraphs. The peers are taken at their word; see coverage_peers. A line
"behind" names the levels at which a peer offloads a larger share, or the same in fewer subgraphs.
Nothing is built.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.coverage_peers import Coverage, ort_coverage, tvm_coverage
from benchmarks.machine import describe_machine
from service.contracts.artifacts import ExplanationReport
from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.frontends.tflite.importer import import_tflite
from workers.graph.graph import Graph
from workers.pipeline.passes.layout import channels_last
from workers.pipeline.stages.ingest import fold
from workers.pipeline.stages.partition import partition

ALL_LEVELS = tuple(range(1, 8))
CACHE = Path("build/networks")
SHARE_TOLERANCE = 1e-3
"""Shares count other units in each column: what differs by less is equal."""


@dataclass(frozen=True)
class Row:
    """One network at one level."""

    network: str
    feature_level: int
    nnfarm: Coverage
    tvm: Coverage | None
    ort: Coverage | None
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def peers(self) -> Mapping[str, Coverage]:
        """Those that gave an answer."""
        given = {"TVM": self.tvm, "ONNX Runtime": self.ort}
        return {name: coverage for name, coverage in given.items() if coverage is not None}

    def behind(self) -> list[str]:
        """Peers that offload more, or the same in fewer subgraphs."""
        return [name for name, peer in self.peers.items() if _is_behind(self.nnfarm, peer)]


def _is_behind(ours: Coverage, peer: Coverage) -> bool:
    # Units differ, and a node that was folded away is offloaded for one and absent for another:
    # a smaller share is one only where more is left, too.
    if peer.share > ours.share + SHARE_TOLERANCE and peer.left < ours.left:
        return True
    if peer.macs_share > ours.macs_share + SHARE_TOLERANCE:
        return True
    return peer.left == ours.left and 0 < peer.subgraphs < ours.subgraphs


def main() -> None:
    arguments = _parse()
    rows: list[Row] = []
    if not arguments.json:
        print(_HEADER)
    for name, path in _models(arguments):
        try:
            of_network = list(measure(name, path, arguments.levels))
        except NnfarmError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        rows += of_network
        if not arguments.json:
            print("\n".join(_lines(of_network)), flush=True)
    if arguments.json:
        document = {"machine": describe_machine(), "rows": [_as_dict(row) for row in rows]}
        json.dump(document, sys.stdout, indent=1)
        print()


def measure(name: str, path: Path, levels: Iterable[int]) -> Iterable[Row]:
    """The rows of one model.

    Raises:
        NnfarmError: the model cannot be imported.
    """
    is_tflite = path.suffix == ".tflite"
    imported = (import_tflite if is_tflite else import_onnx)(path, {})
    folded = fold(imported.graph)
    graph = channels_last(folded)
    ort: Coverage | None = None
    for level in levels:
        report = partition(graph, NnapiBackend(), level).report
        if ort is None and not is_tflite:
            ort = ort_coverage(path, {row.name: row.macs for row in report.operations})
        yield Row(name, level, _ours(report), _tvm(folded, level), ort, _reasons(report))


def _ours(report: ExplanationReport) -> Coverage:
    share = report.offloaded_macs / report.macs if report.macs else 0.0
    return Coverage(report.offloaded_count, report.operation_count, share, report.subgraph_count)


def _tvm(graph: Graph, level: int) -> Coverage | None:
    try:
        return tvm_coverage(graph, level)
    except Exception as error:  # whatever TVM's partitioner raises is its answer
        print(f"TVM's partitioner: {str(error).splitlines()[-1][:120]}", file=sys.stderr)
        return None


def _reasons(report: ExplanationReport) -> Mapping[str, int]:
    found = Counter(
        f"{row.op_type}: {row.rejection.sentence}" for row in report.operations if row.rejection
    )
    return dict(found.most_common())


_HEADER = f"{'':24} {'level':>5} | {'nnfarm':^24} | {'TVM':^24} | {'ONNX Runtime':^24}"


def _lines(rows: list[Row]) -> Iterable[str]:
    for row in rows:
        cells = " | ".join(_cell(coverage) for coverage in (row.nnfarm, row.tvm, row.ort))
        yield f"{row.network:24} {row.feature_level:>5} | {cells}"
    for sentence, count in rows[-1].reasons.items():
        yield f"    {count} x {sentence}"
    behind = {row.feature_level: row.behind() for row in rows}
    for level, peers in behind.items():
        if peers:
            yield f"  behind: {' and '.join(peers)} at level {level}"


def _cell(coverage: Coverage | None) -> str:
    if coverage is None:
        return f"{'-':^24}"
    operations = f"{coverage.offloaded}/{coverage.operations}"
    return f"{operations:>9} {coverage.macs_share:>6.1%} {coverage.subgraphs:>4} sub"


def _as_dict(row: Row) -> dict[str, object]:
    return dataclasses.asdict(row) | {"behind": row.behind()}


def _models(arguments: argparse.Namespace) -> Iterable[tuple[str, Path]]:
    if arguments.models:
        yield from ((path.stem, path) for path in arguments.models)
        return
    yield from _exported(arguments.networks)
    if arguments.tflite.is_dir() and arguments.networks is None:
        yield from ((path.stem, path) for path in sorted(arguments.tflite.rglob("*.tflite")))
    elif arguments.networks is None:
        print(f"no TFLite models in {arguments.tflite}", file=sys.stderr)


def _exported(names: list[str] | None) -> Iterable[tuple[str, Path]]:
    """Networks by name, exported when they are asked for the first time."""
    # Here and not above: models given as files need no PyTorch.
    from benchmarks.exported_networks import NETWORKS, export

    CACHE.mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        path = CACHE / f"{name}.{ModelFormat.ONNX}"
        if not path.exists():
            export(name, path)
        yield name, path


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path, help="ONNX or TFLite files, instead of all")
    parser.add_argument("--networks", type=lambda text: text.split(","), help="by name")
    parser.add_argument(
        "--levels", type=lambda text: [int(n) for n in text.split(",")], default=ALL_LEVELS
    )
    parser.add_argument("--tflite", type=Path, default=Path("../shared/models"))
    parser.add_argument("--json", action="store_true", help="one JSON document")
    return parser.parse_args()


if __name__ == "__main__":
    main()
