"""The order of an ONNX graph's nodes: each tensor must be made before it is used."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from onnx import GraphProto, NodeProto

from service.contracts.errors import NnfarmError


def check_order(graph: GraphProto, outer: AbstractSet[str] = frozenset()) -> None:
    """Refuse cycles, nodes out of order, and tensors nobody makes.

    Args:
        graph: the graph, or one inside a node.
        outer: tensors of the graphs around it that may be used inside.

    Raises:
        NnfarmError: ``model.cyclic`` or ``model.invalid``.
    """
    known = set(outer)
    known.update(value.name for value in graph.input)
    known.update(tensor.name for tensor in graph.initializer)
    known.update(tensor.values.name for tensor in graph.sparse_initializer)
    makers = _makers(graph)
    for index, node in enumerate(graph.node):
        for name in node.input:
            if name and name not in known:
                _refuse(graph, index, name, makers)
        for inner in _inner_graphs(node):
            check_order(inner, known)
        known.update(name for name in node.output if name)
    for output in graph.output:
        if output.name not in known:
            raise NnfarmError("model.invalid", f"No node makes the output {output.name!r}.")


def _makers(graph: GraphProto) -> dict[str, int]:
    makers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in makers:
                raise NnfarmError(
                    "model.invalid",
                    f"Tensor {name!r} is made twice: by {_title(graph.node[makers[name]])} and by "
                    f"{_title(node)}.",
                )
            makers[name] = index
    return makers


def _refuse(graph: GraphProto, index: int, tensor: str, makers: dict[str, int]) -> None:
    node = graph.node[index]
    if tensor not in makers:
        raise NnfarmError(
            "model.invalid", f"{_title(node)} uses tensor {tensor!r}, which nobody makes."
        )
    cycle = _find_cycle(graph, makers)
    if cycle is None:
        raise NnfarmError(
            "model.cyclic",
            f"{_title(node)} uses tensor {tensor!r} before {_title(graph.node[makers[tensor]])} "
            "makes it: nodes must be in topological order.",
            node=node.name,
            tensor=tensor,
        )
    raise NnfarmError(
        "model.cyclic",
        f"{_title(graph.node[cycle])} needs its own result: it is on a cycle of the graph.",
        node=graph.node[cycle].name,
    )


def _find_cycle(graph: GraphProto, makers: dict[str, int]) -> int | None:
    """A node on a cycle, or None. Kahn's algorithm, then a walk back among what is left."""
    sources = [{makers[name] for name in node.input if name in makers} for node in graph.node]
    users: list[list[int]] = [[] for _ in sources]
    for index, needed in enumerate(sources):
        for source in needed:
            users[source].append(index)
    missing = [len(needed) for needed in sources]
    ready = [index for index, count in enumerate(missing) if count == 0]
    while ready:
        for user in users[ready.pop()]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    left = {index for index, count in enumerate(missing) if count > 0}
    if not left:
        return None
    # Every node left has a source that is left too, so the walk must come round.
    current, seen = min(left), set[int]()
    while current not in seen:
        seen.add(current)
        current = min(sources[current] & left)
    return current


def _inner_graphs(node: NodeProto) -> list[GraphProto]:
    inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    for attribute in node.attribute:
        inner.extend(attribute.graphs)
    return inner


def _title(node: NodeProto) -> str:
    return f"node {node.name!r} ({node.op_type})"
