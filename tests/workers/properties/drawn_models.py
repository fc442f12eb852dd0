"""Strategies: models of one operation, of several, and of several with quantized tensors."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import onnx
from hypothesis import assume

from tests.workers.properties.drawing import Drawing, values_for
from tests.workers.properties.drawn_elementwise import ELEMENTWISE
from tests.workers.properties.drawn_movement import MOVEMENT
from tests.workers.properties.drawn_window import WINDOW
from tests.workers.properties.phone import reference

OPERATIONS = (*ELEMENTWISE, *WINDOW, *MOVEMENT)
MIN_OPSET, MAX_OPSET = 13, 20
HARD_SWISH_OPSET = 14
LARGEST = 1e4
"""Of outputs: beyond it float32 has few digits left, and exp overflows."""


def _usable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, where ONNX Runtime computes finite, ordinary numbers of it."""
    assume(len(model.graph.output) > 0)
    try:
        outputs = reference(model, values_for(model))
    except Exception:
        # An operation at an opset that ONNX Runtime has no kernel for: there is nothing to equal.
        assume(False)
    assume(all(o.size and np.isfinite(o).all() and np.abs(o).max() < LARGEST for o in outputs))
    return model


def _shape(draw: st.DrawFn) -> list[int]:
    rank = draw(st.sampled_from((4, 4, 3, 2, 1)))
    batch = 1 if draw(st.booleans()) else draw(st.integers(1, 3))
    return [batch, *(draw(st.integers(1, 8)) for _ in range(rank - 1))]


@st.composite
def sites(draw: st.DrawFn) -> onnx.ModelProto:
    """One operation behind a tanh, so that what only moves data is worth a call."""
    drawing = Drawing(draw, draw(st.integers(HARD_SWISH_OPSET, MAX_OPSET)))
    drawing.keep(*drawing.node("Tanh", [drawing.input(_shape(draw))]))
    draw(st.sampled_from(OPERATIONS))(drawing)
    return _usable(drawing.model())


@st.composite
def graphs(draw: st.DrawFn) -> onnx.ModelProto:
    """Two to eight operations."""
    drawing = Drawing(draw, draw(st.integers(MIN_OPSET, MAX_OPSET)))
    drawing.input(_shape(draw))
    for _ in range(draw(st.integers(2, 8))):
        draw(st.sampled_from(OPERATIONS))(drawing)
    return _usable(drawing.model())
