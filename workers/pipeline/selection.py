"""Which original nodes the user lets go to the accelerator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tvm import relax

from service.contracts.artifacts import Rejection
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOptions
from workers.graph.graph import Graph, OriginalNode


def refused_by_options(graph: Graph, options: CompileOptions) -> Mapping[relax.Var, Rejection]:
    """Variables that stay on the CPU because the user said so, each with its reason.

    Raises:
        NnfarmError: `compile.bad_option`, a node name the model does not have.
    """
    _require_known(graph.nodes, (*options.exclude_nodes, *options.only_nodes))
    refused: dict[relax.Var, Rejection] = {}
    only = set(options.only_nodes)
    for binding in graph.bindings:
        nodes = [graph.nodes[i] for i in sorted(graph.origin_of(binding.var))]
        sentence = _reason(nodes, options)
        if sentence is None and only and nodes and only.isdisjoint(n.name for n in nodes):
            sentence = f"{nodes[0].name} is not among the nodes to offload."
        if sentence is not None:
            refused[binding.var] = Rejection(
                code="nnapi.excluded", sentence=sentence, needed_level=None
            )
    return refused


def _reason(nodes: Iterable[OriginalNode], options: CompileOptions) -> str | None:
    for node in nodes:
        if node.op_type in options.exclude_ops:
            return f"{node.op_type} was excluded by option."
        if node.name in options.exclude_nodes:
            return f"{node.name} was excluded by option."
    return None


def _require_known(nodes: Iterable[OriginalNode], names: Iterable[str]) -> None:
    known = {node.name for node in nodes}
    unknown = sorted(set(names) - known)
    if unknown:
        raise NnfarmError(
            "compile.bad_option",
            f"The model has no node {unknown[0]!r}"
            + (f" (and {len(unknown) - 1} more of those named)." if len(unknown) > 1 else "."),
            node=unknown[0],
        )
