"""What every importer gives."""

from __future__ import annotations

from dataclasses import dataclass

from service.contracts.tensors import ModelSignature
from workers.graph.graph import Graph


@dataclass(frozen=True)
class ImportedModel:
    """The graph and the model's own border."""

    graph: Graph
    signature: ModelSignature
