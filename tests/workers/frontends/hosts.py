"""Imported graphs run on this machine's CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from workers.backends.cpu.layers import lower_layers
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import Graph
from workers.pipeline.stages.ingest import normalise


def on_host(graph: Graph) -> Callable[..., list[np.ndarray]]:
    """The normalised graph as a function from arrays to arrays."""
    target = tvm.target.Target({"kind": "llvm"})
    module = lower_layers(normalise(graph).module, Vectors(4, 16, folds_loads=False))
    machine = relax.VirtualMachine(relax.build(module, target), tvm.cpu())

    def run(*inputs: np.ndarray) -> list[np.ndarray]:
        answer = machine["main"](*map(tvm.runtime.tensor, inputs))
        several = answer if not isinstance(answer, tvm.runtime.Tensor) else [answer]
        return [item.numpy() for item in several]

    return run
