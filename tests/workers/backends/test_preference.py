"""Several accelerators in order of preference, one of them from a package of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from service.contracts.errors import NnfarmError
from service.contracts.jobs import Precision
from tests.workers.onnx_models import make_model, weights
from tests.workers.properties.phone import Answer, Phone
from workers.backends import registry

LEVEL = 4
ENTRY_POINT = "element_wise = tests.workers.fakes.element_wise_accelerator:ElementWise"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with one that registers an accelerator."""
    folder = tmp_path_factory.mktemp("packages")
    metadata = folder / "element_wise-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: element-wise\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\n{ENTRY_POINT}\n")
    return folder


def _model() -> onnx.ModelProto:
    """Relu, MatMul, Tanh, MatMul, Sinh, Add: a chain that each accelerator can take a part of."""
    nodes = [
        helper.make_node("Relu", ["x"], ["1"]),
        helper.make_node("MatMul", ["1", "w"], ["2"]),
        helper.make_node("Tanh", ["2"], ["3"]),
        helper.make_node("MatMul", ["3", "w"], ["4"]),
        helper.make_node("Sinh", ["4"], ["5"]),
        helper.make_node("Add", ["5", "x"], ["y"]),
    ]
    return make_model(nodes, {"x": [3, 4]}, ["y"], {"w": weights(4, 4)})


@pytest.fixture
def answer(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    packages: Path,
    player_library: Path,
    simulator_dir: Path,
) -> Iterator[Answer]:
    """The model compiled for the accelerators named by the parameter, run and compared."""
    phone = Phone(tmp_path, player_library, simulator_dir, request.param, packages)
    inputs = {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}
    yield phone.compare(_model(), inputs, LEVEL)
    phone.close()


@pytest.mark.parametrize("answer", [("element_wise", "nnapi")], indirect=True)
def test_the_first_is_offered_everything_and_the_next_what_is_left(answer: Answer) -> None:
    first, second = "element_wise", "nnapi"
    assert answer.accelerators == (first, second, first, second, None, first)
    assert answer.rejected == ("Sinh",)
    assert len(answer.documents) == 5
    assert answer.outputs is not None


@pytest.mark.parametrize("answer", [("nnapi", "element_wise")], indirect=True)
def test_nothing_is_taken_from_the_first(answer: Answer) -> None:
    assert answer.accelerators == ("nnapi", "nnapi", "nnapi", "nnapi", None, "nnapi")
    assert len(answer.documents) == 2


@pytest.mark.parametrize("answer", [("element_wise",)], indirect=True)
def test_what_none_asked_for_takes_stays_on_the_cpu(answer: Answer) -> None:
    assert answer.accelerators == ("element_wise", None, "element_wise", None, None, "element_wise")
    assert answer.rejected == ("MatMul", "MatMul", "Sinh")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("nnapi", "tpu"), "no accelerator 'tpu'; there are: nnapi, element_wise"),
        (("nnapi", "nnapi"), "'nnapi' was named twice"),
        ((), "At least one accelerator"),
    ],
)
def test_a_bad_list_is_an_error(
    names: tuple[str, ...], sentence: str, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    registry._registered.cache_clear()
    with pytest.raises(NnfarmError, match=sentence) as caught:
        registry.require_known(names)
    assert caught.value.code == "compile.bad_option"
    registry._registered.cache_clear()


def test_a_registered_accelerator_is_made_by_its_package(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    registry._registered.cache_clear()
    made = registry.make_backend(("element_wise", "nnapi"), Precision.FLOAT32)
    assert made.name == "element_wise+nnapi"
    registry._registered.cache_clear()
