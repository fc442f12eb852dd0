"""What an accelerator backend offers the pipeline.

A backend claims units of the graph (one or several bindings that become operations of the
accelerator together), the pipeline merges them into convex regions, and the backend writes each
region down as the bytes of a TVM runtime module. The pipeline knows nothing of NNAPI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tvm import relax

from service.contracts.artifacts import Rejection
from service.contracts.jobs import Precision
from workers.graph.graph import Graph


@dataclass(frozen=True)
class Unit:
    """Bindings that are offloaded together or not at all.

    Attributes:
        accelerator: name of the backend that claimed it.
        members: the bound variables; the last is what the unit computes.
        operations: the accelerator's operations it becomes, by name, for the report.
        computes: False for what only moves or renames data; a region of such units alone
            is handed back to the CPU.
    """

    accelerator: str
    members: tuple[relax.Var, ...]
    operations: tuple[str, ...]
    computes: bool

    @property
    def output(self) -> relax.Var:
        """The variable other bindings may read."""
        return self.members[-1]


@dataclass(frozen=True)
class Claims:
    """A backend's word on every binding of a graph: a unit has it, or here is why not."""

    units: tuple[Unit, ...]
    rejections: Mapping[relax.Var, Rejection]


@dataclass(frozen=True)
class Region:
    """A convex set of units of one accelerator that becomes one model there.

    Attributes:
        symbol: name of the packed function that runs it.
        units: in topological order.
        inputs: variables read from outside, in order of first use.
        outputs: variables read outside, in graph order.
    """

    symbol: str
    units: tuple[Unit, ...]
    inputs: tuple[relax.Var, ...]
    outputs: tuple[relax.Var, ...]

    @property
    def accelerator(self) -> str:
        """Name of the backend that encodes it."""
        return self.units[0].accelerator


@dataclass(frozen=True)
class EncodedRegion:
    """One region as the bytes of a runtime module of kind `module_kind`."""

    symbol: str
    module_kind: str
    module_bytes: bytes
    needed_level: int
    operation_count: int


@dataclass(frozen=True)
class Encoding:
    """All regions of one artifact and the files with their constants, by name in the package."""

    regions: tuple[EncodedRegion, ...]
    files: Mapping[str, bytes]


class Backend(Protocol):
    """An accelerator the compiler can offload to."""

    name: str

    def prepare(self, graph: Graph, feature_level: int) -> Graph:
        """The same computation in the form `claim` wants; what is not claimed runs in it, too."""

    def precision_at(self, feature_level: int) -> Precision:
        """How float32 tensors are computed at a level: what was asked, or the nearest it has."""

    def claim(
        self, graph: Graph, feature_level: int, refused: Mapping[relax.Var, Rejection]
    ) -> Claims:
        """Decide for each binding but those refused. Whatever is claimed here, `encode` takes."""

    def encode(self, regions: Sequence[Region], feature_level: int) -> Encoding:
        """Write the regions down."""
