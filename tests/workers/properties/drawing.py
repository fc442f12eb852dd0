"""A model that grows by drawn nodes, with the shape of every value known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


@dataclass
class Drawing:
    """What was drawn so far.

    Attributes:
        draw: hypothesis's.
        opset: of the model.
        shapes: of float values that nodes may read, newest last.
    """

    draw: st.DrawFn
    opset: int
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _nodes: list[onnx.NodeProto] = field(default_factory=list)
    _constants: list[onnx.TensorProto] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)
    _ends: set[str] = field(default_factory=set)

    def input(self, shape: Sequence[int]) -> str:
        """A new float32 input."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.shapes[name] = tuple(shape)
        return name

    def constant(self, value: Array) -> str:
        """A new constant."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def weights(self, *shape: int) -> str:
        """A constant of normal values; which, hypothesis need not know."""
        random = np.random.default_rng(len(self._constants))
        return self.constant(random.standard_normal(shape).astype(np.float32))

    def int64(self, *values: int) -> str:
        """A constant vector of indexes, axes or sizes."""
        return self.constant(np.array(values, np.int64))

    def node(
        self, op: str, names: Sequence[str], outputs: int = 1, **attributes: Any
    ) -> tuple[str, ...]:
        """A new node; its outputs are not for others to read until `keep` says so."""
        self._read.update(names)
        made = tuple(f"n{len(self._nodes)}_{i}" for i in range(outputs))
        label = f"{op.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(names), list(made), name=label, **attributes))
        return made

    def keep(self, *names: str) -> None:
        """Float values that later nodes may read; their shapes are inferred."""
        inferred = onnx.shape_inference.infer_shapes(self._proto(names), strict_mode=True)
        for value in inferred.graph.output:
            dims = value.type.tensor_type.shape.dim
            self.shapes[value.name] = tuple(d.dim_value for d in dims)

    def end(self, *names: str) -> None:
        """Float values that are outputs and nothing else."""
        self.keep(*names)
        self._ends.update(names)

    def pick_exact(self, *ranks: int) -> tuple[str, tuple[int, ...]]:
        """An input: what is computed before a step function differs in its last digit."""
        fitting = [n for n, s in self.inputs.items() if not ranks or len(s) in ranks]
        if not fitting:
            fitting = [self._new_input(ranks)]
        name = self.draw(st.sampled_from(fitting))
        return name, self.shapes[name]

    def _new_input(self, ranks: Sequence[int]) -> str:
        rank = self.draw(st.sampled_from(ranks or (1, 2, 3, 4)))
        return self.input([self.draw(st.integers(1, 6)) for _ in range(rank)])

    def pick(self, *ranks: int) -> tuple[str, tuple[int, ...]]:
        """A value of one of the ranks (of any, without): the newest more often, or a new input."""
        shapes = {n: s for n, s in self.shapes.items() if n not in self._ends}
        fitting = [n for n, s in shapes.items() if not ranks or len(s) in ranks]
        if not fitting:
            fitting = [self._new_input(ranks)]
        name = fitting[-1] if self.draw(st.booleans()) else self.draw(st.sampled_from(fitting))
        return name, self.shapes[name]

    def model(self) -> onnx.ModelProto:
        """The model; what nobody reads is an output."""
        ends = [name for name in self.shapes if name not in self._read and name not in self.inputs]
        return self._proto(ends)

    def _proto(self, ends: Sequence[str]) -> onnx.ModelProto:
        def info(name: str, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        graph = helper.make_graph(
            self._nodes,
            "drawn",
            [info(name, shape) for name, shape in self.inputs.items() if name in self._read],
            [info(name, self.shapes.get(name)) for name in ends],
            self._constants,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def values_for(model: onnx.ModelProto) -> Mapping[str, Array]:
    """Normal values for every input, the same at every call."""
    random = np.random.default_rng(5)
    return {
        value.name: random.standard_normal(
            [d.dim_value for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
    }
