"""Recurrent layers on 8 bits: LiteRT's integers, to a step or two, computed in real numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from tests.workers.tflite_models import Step, Value, tflite_model
from workers.frontends.tflite.importer import import_tflite
from workers.pipeline.stages.runtimes import run_original

RNG = np.random.default_rng(17)


def weights(*shape: int, scale: float = 0.01) -> Value:
    return Value(shape, "int8", RNG.integers(-127, 128, shape, np.int8), scale)


def bias(count: int, scale: float) -> Value:
    return Value((count,), "int32", RNG.integers(-3000, 3000, count, np.int32), scale)


def lstm() -> bytes:
    """Six steps of one sequence of eight numbers, five cells."""
    data, state = 1 / 32, 1 / 128
    values = {
        "x": Value((1, 6, 8), "int8", scale=data, zero_point=2),
        **{f"w{gate}": weights(5, 8) for gate in "ifco"},
        **{f"r{gate}": weights(5, 5) for gate in "ifco"},
        **{f"b{gate}": bias(5, data * 0.01) for gate in "ifco"},
        "h": Value((1, 5), "int8", scale=state, zero_point=-3, is_variable=True),
        "c": Value((1, 5), "int16", scale=2.0**-11, is_variable=True),
        **{f"t{i}": Value((), "int16", scale=2.0**-12) for i in range(4)},
        "hidden": Value((), "int8", scale=state, zero_point=-3),
        "y": Value((1, 6, 5), "int8", scale=state, zero_point=-3),
    }
    order = ["x", *(kind + gate for kind in "wr" for gate in "ifco"), "", "", ""]
    order += [*(f"b{gate}" for gate in "ifco"), "", "", "h", "c", "", "", "", ""]
    step = Step(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", order, ["y"], "UnidirectionalSequenceLSTMOptions",
        {"fusedActivationFunction": 4, "timeMajor": False}, version=2,
        intermediates=["t0", "t1", "t2", "t3", "hidden"],
    )  # fmt: skip
    return tflite_model(values, [step], ["x"], ["y"])


def svdf() -> bytes:
    data = 1 / 32
    values = {
        "x": Value((1, 8), "int8", scale=data, zero_point=2),
        "w": weights(6, 8),
        "t": Value((6, 4), "int16", RNG.integers(-9000, 9000, (6, 4), np.int16), 2.0**-13),
        "b": bias(3, 2.0**-13 * 2.0**-10),
        "s": Value((1, 24), "int16", scale=2.0**-10, is_variable=True),
        "y": Value((1, 3), "int8", scale=1 / 32, zero_point=-128),
    }
    step = Step(
        "SVDF", ["x", "w", "t", "b", "s"], ["y"], "SVDFOptions",
        {"rank": 2, "fusedActivationFunction": 1}, version=3,
    )  # fmt: skip
    return tflite_model(values, [step], ["x"], ["y"])


@pytest.mark.parametrize("model", [lstm(), svdf()], ids=["LSTM", "SVDF"])
def test_integers_are_those_of_litert(model: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    imported = import_tflite(path)
    (spec,) = imported.signature.inputs
    x = RNG.integers(-128, 128, (8, *spec.shape), np.int8)
    want = run_original(path, ModelFormat.TFLITE, imported.signature, {"x": x})["y"].astype(int)
    run = on_host(imported.graph)
    got = np.stack([run(sample)[0] for sample in x]).astype(int)
    assert np.ptp(want) > 40  # of 255: the numbers say something
    assert np.abs(got - want).max() <= 2
    assert (got == want).mean() > 0.8
