"""LSTMs written out by models, as one layer again; the numbers are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.workers.frontends.hosts import on_host
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.pytorch.importer import import_pytorch
from workers.graph.graph import Graph
from workers.graph.recurrence.layer import recurrence_of
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

STEPS, WIDTH, UNITS = 6, 5, 4


class Cells(nn.Module):
    """Two layers of cells in one loop, whose outputs are written into a list as TensorFlow does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(WIDTH, UNITS), nn.LSTMCell(UNITS, UNITS)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        below = above = (torch.zeros(2, UNITS), torch.zeros(2, UNITS))
        outputs = torch.zeros(STEPS, 2, UNITS)
        for step in range(STEPS):
            below = self.first(x[step], below)
            above = self.second(below[0], above)
            outputs = torch.cat([outputs[:step], above[0][None], outputs[step + 1 :]])
        return outputs, above[1]


class Gates(nn.Module):
    """From the end, with the inputs multiplied at once, from a state that is given."""

    def __init__(self, gives_cells: bool = False) -> None:
        super().__init__()
        self.input, self.state = nn.Linear(WIDTH, 4 * UNITS), nn.Linear(UNITS, 4 * UNITS)
        self.gives_cells = gives_cells

    def forward(self, x: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        sums, outputs, cells = self.input(x), [], []
        hidden = cell = given
        for step in reversed(range(STEPS)):
            o, i, f, g = (sums[:, step] + self.state(hidden)).chunk(4, dim=-1)
            cell = torch.sigmoid(f) * cell + torch.tanh(g) * torch.sigmoid(i)
            hidden = torch.tanh(cell) * torch.sigmoid(o)
            outputs.append(hidden)
            cells.append(cell)
        return torch.stack(cells if self.gives_cells else outputs[::-1], 1)


Import = Callable[..., tuple[Graph, list[np.ndarray], list[np.ndarray]]]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """The graph of an exported module, drawn inputs, and PyTorch's outputs."""

    def make(module: nn.Module, *shapes: tuple[int, ...]) -> tuple[Graph, list, list]:
        torch.manual_seed(3)
        inputs = tuple(torch.randn(shape) for shape in shapes)
        path = tmp_path / "model.pt2"
        torch.export.save(torch.export.export(module.eval(), inputs), path)
        with torch.no_grad():
            outputs = module(*inputs)
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        graph = import_pytorch(path).graph
        return graph, [one.numpy() for one in inputs], [one.numpy() for one in several]

    return make


def layers(graph: Graph) -> int:
    return sum(recurrence_of(binding.value) is not None for binding in graph.bindings)


def agree(graph: Graph, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    for ours, theirs in zip(on_host(graph)(*inputs), outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_cells_in_a_loop(imported: Import) -> None:
    graph, inputs, outputs = imported(Cells(), (STEPS, 2, WIDTH))
    agree(graph, inputs, outputs)
    normal = normalise(graph)
    assert layers(normal) == 2
    report = partition(normal, NnapiBackend(), 4).report
    rows = [row.nnapi_operations for row in report.operations if row.op_type == "lstm_cell"]
    assert len(rows) == 2 * STEPS  # all of them are done by the layers
    assert all("UNIDIRECTIONAL_SEQUENCE_LSTM" in row for row in rows)
    assert report.offloaded_count == report.operation_count


def test_gates_from_the_end(imported: Import) -> None:
    graph, inputs, outputs = imported(Gates(), (3, STEPS, WIDTH), (3, UNITS))
    agree(graph, inputs, outputs)
    assert layers(normalise(graph)) == 1


def test_cells_that_are_read_stay_written_out(imported: Import) -> None:
    """The layer gives only the last one."""
    graph, inputs, outputs = imported(Gates(gives_cells=True), (3, STEPS, WIDTH), (3, UNITS))
    agree(graph, inputs, outputs)
    assert layers(normalise(graph)) == 0
