"""Recurrent layers: one operation of NNAPI where a level has it, the runtimes' numbers at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper

from service.contracts.jobs import ModelFormat, Precision
from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from tests.workers.frontends.test_tflite import lstm, two_way_lstm, two_way_rnn
from tests.workers.frontends.test_tflite_recurrent_int8 import lstm as int8_lstm
from tests.workers.onnx_models import make_model, single, weights
from workers.backends.nnapi.backend import NnapiBackend
from workers.pipeline.stages.ingest import IngestedModel, ingest
from workers.pipeline.stages.partition import partition
from workers.pipeline.stages.runtimes import run_original

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")
"""PyTorch's exporter on its own layers."""

NEVER = 99
LEVELS = (1, 3, 4, 7)
SUFFIXES = {ModelFormat.ONNX: "onnx", ModelFormat.TFLITE: "tflite", ModelFormat.PYTORCH: "pt2"}


@dataclass(frozen=True)
class Case:
    """A model whose layer is `operation` from `level` on."""

    model: bytes
    operation: str
    level: int
    kind: ModelFormat = ModelFormat.ONNX

    def ingested(self, folder: Path) -> tuple[Path, IngestedModel]:
        path = folder / f"model.{SUFFIXES[self.kind]}"
        path.write_bytes(self.model)
        return path, ingest(path, self.kind, {})


def of_onnx(op: str, *read: str, steps: int = 5, peepholes: bool = False, **more: object) -> bytes:
    """Two sequences of four numbers, three units; `read` are the results the model gives."""
    ways = 2 if more.get("direction") == "bidirectional" else 1
    gates = 4 if op == "LSTM" else 1
    constants = {
        "w": weights(ways, gates * 3, 4),
        "r": weights(ways, gates * 3, 3, seed=1),
        "b": weights(ways, gates * 6, seed=2),
        "p": weights(ways, 9, seed=3),
    }
    states = {"h0": [ways, 2, 3], "c0": [ways, 2, 3]} if more.pop("given", False) else {}
    args = ["x", "w", "r", "b", "", *(states or ["", ""]), "p" if peepholes else ""]
    outputs = [name if name in read else "" for name in ("y", "h", "c")]
    args, outputs = (_without_last_gaps(names) for names in (args, outputs))
    node = helper.make_node(op, args, outputs, name="layer", hidden_size=3, **more)
    constants = {name: array for name, array in constants.items() if name in args}
    return make_model([node], {"x": [steps, 2, 4], **states}, read, constants).SerializeToString()


def _without_last_gaps(names: list[str]) -> list[str]:
    return names[: max(place for place, name in enumerate(names, 1) if name)]


def of_pytorch(kind: type[torch.nn.RNNBase], folder: Path, **options: object) -> bytes:
    torch.manual_seed(0)
    layers = kind(6, 4, 2, bidirectional=True, batch_first=True, **options).eval()
    path = folder / "layers.pt2"
    torch.export.save(torch.export.export(layers, (torch.randn(1, 5, 6),)), path)
    return path.read_bytes()


ONE, BOTH = "UNIDIRECTIONAL_SEQUENCE_", "BIDIRECTIONAL_SEQUENCE_"
CASES: Mapping[str, Case] = {
    "outputs": Case(of_onnx("LSTM", "y"), f"{ONE}LSTM", 3),
    # Of the last output there is a slice at level 3; of the last cell there is nothing.
    "last output": Case(of_onnx("LSTM", "y", "h", direction="bidirectional"), f"{BOTH}LSTM", 3),
    "last cell": Case(of_onnx("LSTM", "y", "h", "c", direction="bidirectional"), f"{BOTH}LSTM", 4),
    "from the end": Case(of_onnx("LSTM", "y", "c", direction="reverse"), f"{ONE}LSTM", 4),
    "peepholes": Case(of_onnx("LSTM", "y", peepholes=True, given=True), f"{ONE}LSTM", 3),
    "relu": Case(of_onnx("LSTM", "h", activations=["Sigmoid", "Relu", "Relu"]), f"{ONE}LSTM", 3),
    "one step": Case(of_onnx("LSTM", "y", "h", "c", steps=1, given=True), "LSTM", 1),
    "rnn": Case(of_onnx("RNN", "y", "h"), f"{ONE}RNN", 3),
    "rnn both ways": Case(of_onnx("RNN", "h", direction="bidirectional"), f"{BOTH}RNN", 3),
    "rnn one step": Case(of_onnx("RNN", "y", steps=1, activations=["Sigmoid"]), "RNN", 1),
    "gru": Case(single("GRU", {"x": [4, 1, 3]}, {"w": weights(1, 6, 3), "r": weights(1, 6, 2)},
                       hidden_size=2).SerializeToString(), "GRU", NEVER),
    **{
        name: Case(case.model(), operation, 3, ModelFormat.TFLITE)
        for name, case, operation in (
            ("tflite coupled", lstm(coupled=True, peepholes=True, projected=True), f"{ONE}LSTM"),
            ("tflite normalized", lstm(normalized=True), f"{ONE}LSTM"),
            ("tflite both ways", two_way_lstm("", cellClip=0.5), f"{BOTH}LSTM"),
            ("tflite rnn both ways", two_way_rnn("", mergeOutputs=True), f"{BOTH}RNN"),
        )
    },
    "tflite step": Case(
        lstm(single=True, projected=True, coupled=True).model(), "LSTM", 1, ModelFormat.TFLITE
    ),
    "tflite normalized step": Case(
        lstm(single=True, normalized=True).model(), "LSTM", 3, ModelFormat.TFLITE
    ),
    "tflite int8": Case(int8_lstm(), f"{ONE}LSTM", 3, ModelFormat.TFLITE),
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Case]:
    """With PyTorch's, whose export takes time."""
    folder = tmp_path_factory.mktemp("pytorch")
    return {
        **CASES,
        "pytorch": Case(of_pytorch(torch.nn.LSTM, folder), f"{BOTH}LSTM", 4, ModelFormat.PYTORCH),
        "pytorch projection": Case(
            of_pytorch(torch.nn.LSTM, folder, proj_size=3), f"{BOTH}LSTM", 4, ModelFormat.PYTORCH
        ),
    }


def test_is_one_operation_from_its_level_on(cases: Mapping[str, Case], tmp_path: Path) -> None:
    for name, case in cases.items():
        _, model = case.ingested(tmp_path)
        for level in (*LEVELS, 2):
            report = partition(model.graph, NnapiBackend(), level).report
            operations = [name for row in report.operations for name in row.nnapi_operations]
            is_whole = case.operation in operations
            assert is_whole == (level >= case.level), (name, level, operations)
            # Level 1 leaves a result that is turned to the CPU, level 2 one of int8.
            is_all = report.offloaded_count == report.operation_count
            assert is_all or level < 3, (name, level)
            assert report.macs > 0


def test_gives_the_numbers_of_the_runtime(
    cases: Mapping[str, Case], tmp_path: Path, player_library: Path, simulator_dir: Path
) -> None:
    generator, wanted = np.random.default_rng(3), {}
    played = tmp_path / "played"
    played.mkdir()
    for name, case in cases.items():
        path, model = case.ingested(tmp_path)
        inputs = {}
        for spec in model.signature.inputs:
            drawn = generator.uniform(-2, 2, (1, *spec.shape)).astype(np.float32)
            inputs[spec.name] = (drawn * 60).astype(np.int8) if spec.dtype == "int8" else drawn
        expected = run_original(path, case.kind, model.signature, inputs)
        for level in LEVELS:
            backend = NnapiBackend()
            split = partition(model.graph, backend, level)
            if len(split.regions) != 1 or split.regions[0].outputs != split.graph.outputs:
                assert level == 1 or (level == 3 and name.endswith("int8")), name
                continue
            encoding = backend.encode(split.regions, level)
            given = {name: array[0] for name, array in inputs.items()}
            write_subgraph(played, f"{name} {level}", encoding, split.regions[0], given)
            wanted[f"{name} {level}"] = [array[0] for array in expected.values()]
    play(played, player_library, simulator_dir)
    assert len(wanted) > 3 * len(cases)
    for name, expected_ones in wanted.items():
        for ours, theirs in zip(answers(played, name), expected_ones, strict=True):
            atol = 2 if theirs.dtype == np.int8 else 1e-5
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=atol, err_msg=name)


def test_half_precision(tmp_path: Path, player_library: Path, simulator_dir: Path) -> None:
    case = CASES["last cell"]
    path, model = case.ingested(tmp_path)
    x = np.random.default_rng(5).uniform(-2, 2, (1, 5, 2, 4)).astype(np.float32)
    expected = run_original(path, case.kind, model.signature, {"x": x})
    halves = (Precision.FLOAT16, Precision.RELAXED)
    for precision in halves:
        backend = NnapiBackend(precision)
        split = partition(model.graph, backend, 4)
        assert case.operation in split.report.operations[0].nnapi_operations
        encoding = backend.encode(split.regions, 4)
        write_subgraph(tmp_path, precision, encoding, split.regions[0], {"x": x[0]})
    play(tmp_path, player_library, simulator_dir)
    for precision in halves:
        for ours, theirs in zip(answers(tmp_path, precision), expected.values(), strict=True):
            np.testing.assert_allclose(ours, theirs[0], atol=2e-2)
