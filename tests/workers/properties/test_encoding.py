"""The encoded form says the lowered model, and the player gives it back as it got it."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import Any

import onnx
import tvm_ffi
from hypothesis import HealthCheck, given, settings

from tests.workers.properties.drawn_models import graphs
from tests.workers.properties.encoded_reader import read
from tests.workers.properties.phone import LEVELS
from workers.backends.nnapi.backend import NnapiBackend
from workers.backends.nnapi.encode import WEIGHTS_FILE
from workers.backends.nnapi.model import Model
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition


class _Remembering(NnapiBackend):
    """The backend, keeping the models it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.models: list[Model] = []

    def _lower_region(self, *args: Any) -> Model:
        self.models.append(super()._lower_region(*args))
        return self.models[-1]


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(model=graphs())
def test_round_trips_and_is_accepted_by_the_player(
    player_library: Path, model: onnx.ModelProto
) -> None:
    ctypes.CDLL(str(player_library), ctypes.RTLD_GLOBAL)
    create = tvm_ffi.get_global_func("nnfarm.nnapi.module_create")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        graph = normalise(import_onnx(path).graph)
    for level in LEVELS:
        backend = _Remembering()
        split = partition(graph, backend, level)
        encoding = backend.encode(split.regions, level)
        for region, lowered in zip(encoding.regions, backend.models, strict=True):
            document = region.module_bytes.decode()
            weights = encoding.files.get(WEIGHTS_FILE, b"")
            assert read(document, weights) == _said(region.symbol, lowered)
            assert create(document).inspect_source() == document


def _said(symbol: str, model: Model) -> dict[str, Any]:
    """A lowered model in the reader's words."""
    return {
        "symbol": symbol,
        "level": model.level,
        "relaxed": model.relaxed,
        "inputs": model.inputs,
        "outputs": model.outputs,
        "operands": [
            {
                "type": int(o.type),
                "dims": o.dims,
                "scale": o.scale,
                "zero_point": o.zero_point,
                "channel_dim": o.channel_dim,
                "channel_scales": o.channel_scales,
                "value": o.value,
            }
            for o in model.operands
        ],
        "operations": [(o.code, o.name, o.inputs, o.outputs) for o in model.operations],
    }
