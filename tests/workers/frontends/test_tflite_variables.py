"""Variables of TFLite models: those that only the beginning sets are constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from tests.workers.tflite_models import Step, Subgraph, Value, constant, tflite_model
from workers.frontends.tflite.importer import import_tflite
from workers.pipeline.stages.runtimes import run_original

HANDLE = Value((), "resource")
WEIGHTS = np.random.default_rng(31).standard_normal((5, 3)).astype(np.float32)
BEGIN = Step("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 1})
OPEN = Step("VAR_HANDLE", [], ["v"], "VarHandleOptions", {"sharedName": "weights"})
READ = Step("READ_VARIABLE", ["v"], ["w"], "ReadVariableOptions")
WRITE = Step("ASSIGN_VARIABLE", ["v", "w"], [], "AssignVariableOptions")
MULTIPLY = Step("FULLY_CONNECTED", ["x", "w"], ["y"], "FullyConnectedOptions")


def model(steps: list[Step]) -> bytes:
    values = {"v": HANDLE, "x": Value((2, 3)), "w": Value((5, 3)), "y": Value((2, 5))}
    begin = Subgraph({"v": HANDLE, "w": constant(WEIGHTS, "float32")}, [OPEN, WRITE], [], [])
    return tflite_model(values, steps, ["x"], ["y"], [begin])


def test_what_the_beginning_sets_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model([BEGIN, OPEN, READ, MULTIPLY]))
    imported = import_tflite(path)
    x = np.random.default_rng(1).standard_normal((1, 2, 3)).astype(np.float32)
    want = run_original(path, ModelFormat.TFLITE, imported.signature, {"x": x})["y"][0]
    np.testing.assert_allclose(on_host(imported.graph)(x[0])[0], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([BEGIN, OPEN, READ, MULTIPLY, WRITE], "keeps a variable from run to run"),
        ([OPEN, READ, MULTIPLY], "reads a variable that nothing has set"),
    ],
)
def test_other_variables_are_refused(steps: list[Step], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model(steps))
    with pytest.raises(NnfarmError, match=sentence) as caught:
        import_tflite(path)
    assert caught.value.code == "compile.unsupported_operation"
