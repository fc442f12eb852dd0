"""Several accelerators in order of preference, as one backend.

Each backend is offered what those before it left. A region belongs to one accelerator; where two of
them meet, the CPU part of the program hands the tensors over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from service.contracts.artifacts import Rejection
from service.contracts.jobs import Precision
from workers.backends.base import Backend, Claims, EncodedRegion, Encoding, Region, Unit
from workers.graph.graph import Graph

_TAKEN = Rejection(code="accelerator.taken", sentence="An accelerator before it has it.")


class Preference:
    """Implements `workers.backends.base.Backend` over others.

    Args:
        backends: the most wanted first; at least one, each with a name of its own.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)
        self.name = "+".join(backend.name for backend in backends)

    def prepare(self, graph: Graph, feature_level: int) -> Graph:
        """In the form of each, one after the other: every step keeps what the graph computes."""
        for backend in self._backends:
            graph = backend.prepare(graph, feature_level)
        return graph

    def precision_at(self, feature_level: int) -> Precision:
        """What the most wanted accelerator uses."""
        return self._backends[0].precision_at(feature_level)

    def claim(
        self, graph: Graph, feature_level: int, refused: Mapping[relax.Var, Rejection]
    ) -> Claims:
        """Each backend on what is left; the reason that counts is the most wanted one's."""
        units: list[Unit] = []
        rejections = dict(refused)
        for backend in self._backends:
            taken = {var: _TAKEN for unit in units for var in unit.members}
            claims = backend.claim(graph, feature_level, {**refused, **taken})
            units += claims.units
            for var, rejection in claims.rejections.items():
                rejections.setdefault(var, rejection)
        for unit in units:
            for var in unit.members:
                rejections.pop(var, None)
        position = {binding.var: index for index, binding in enumerate(graph.bindings)}
        units.sort(key=lambda unit: position[unit.output])
        return Claims(tuple(units), rejections)

    def encode(self, regions: Sequence[Region], feature_level: int) -> Encoding:
        """Each backend its own regions; the files stand side by side in the package."""
        encoded: dict[str, EncodedRegion] = {}
        files: dict[str, bytes] = {}
        for backend in self._backends:
            own = [region for region in regions if region.accelerator == backend.name]
            encoding = backend.encode(own, feature_level)
            encoded |= {region.symbol: region for region in encoding.regions}
            if shared := files.keys() & encoding.files.keys():
                raise AssertionError(f"two accelerators write {sorted(shared)}")
            files |= encoding.files
        return Encoding(tuple(encoded[region.symbol] for region in regions), files)
