"""Drawn models: compiled for every level, the phone computes what ONNX Runtime computes.

A failure prints the model and the command that tries it again. `make properties` draws more.
"""

from __future__ import annotations

import os

import hypothesis.strategies as st
import onnx
from hypothesis import HealthCheck, given, settings

from tests.workers.properties.drawing import values_for
from tests.workers.properties.drawn_models import graphs, sites
from tests.workers.properties.phone import LEVELS, Phone

# Building a graph is what takes time: the health check would call that slow data generation.
_SETTINGS = settings(
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
SITES = int(os.environ.get("NNFARM_DRAWN_SITES", "200"))
GRAPHS = int(os.environ.get("NNFARM_DRAWN_GRAPHS", "10"))


@settings(_SETTINGS, max_examples=SITES)
@given(model=sites(), level=st.sampled_from(LEVELS))
def test_what_check_accepts_is_played_and_computes_the_same(
    phone: Phone, model: onnx.ModelProto, level: int
) -> None:
    answer = phone.compare(model, values_for(model), level)
    assert all(needed <= level for needed in answer.needed_levels)


@settings(_SETTINGS, max_examples=GRAPHS)
@given(model=graphs())
def test_graphs_compute_the_same_at_every_level(phone: Phone, model: onnx.ModelProto) -> None:
    for level in LEVELS:
        phone.compare(model, values_for(model), level)
