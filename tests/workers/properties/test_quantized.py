"""Drawn operations in QDQ form, as ONNX Runtime's own tool writes it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import onnx
from hypothesis import HealthCheck, assume, given, settings

from tests.workers.backends.nnapi.quantized_models import quantized
from tests.workers.properties.drawing import values_for
from tests.workers.properties.drawn_models import sites
from tests.workers.properties.phone import LEVELS, Phone, last_step


@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    model=sites(),
    dtype=st.sampled_from(("int8", "uint8")),
    per_channel=st.booleans(),
    level=st.sampled_from(LEVELS),
)
def test_quantized_operations_are_within_two_steps(
    phone: Phone, model: onnx.ModelProto, dtype: str, per_channel: bool, level: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        qdq = quantized(model, Path(folder), dtype, per_channel)
    # What the tool left in float has no step to be measured by.
    assume(all(last_step(qdq, index) > 0 for index in range(len(qdq.graph.output))))
    phone.compare(qdq, values_for(qdq), level)
