"""Control flow of TFLite: what is known when compiling is written out, the rest refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from tests.workers.tflite_models import Step, Subgraph, Value, constant, tflite_model
from workers.frontends.tflite.importer import import_tflite
from workers.pipeline.stages.runtimes import run_original

RNG = np.random.default_rng(5)
NOTHING = np.frombuffer(flexbuffers.Dumps({}), np.uint8)
COUNTER = Value((), "int32")
ROW = Value((1, 3))


def recurrence(steps: int) -> bytes:
    """What Keras makes of a recurrent layer: row by row of x, state = tanh(state * w + row)."""
    values = {
        "x": Value((4, 3)), "zero": constant(0), "start": constant(np.zeros((1, 3)), "float32"),
        "count": COUNTER, "state": ROW, "rows": Value((4, 3)),
    }  # fmt: skip
    loop = Step(
        "WHILE", ["zero", "start", "x"], ["count", "state", "rows"], "WhileOptions",
        {"condSubgraphIndex": 1, "bodySubgraphIndex": 2},
    )  # fmt: skip
    arguments = {"i": COUNTER, "s": ROW, "rows": Value((4, 3))}
    condition = Subgraph(
        {**arguments, "end": constant(steps), "goes": Value((), "bool")},
        [Step("LESS", ["i", "end"], ["goes"])], list(arguments), ["goes"],
    )  # fmt: skip
    body = Subgraph(
        {
            **arguments, "one": constant(1), "next": COUNTER, "row": Value((3,)),
            "w": constant(RNG.standard_normal((3, 3)), "float32"), "product": ROW,
            "sum": ROW, "new": ROW,
        },
        [
            Step("ADD", ["i", "one"], ["next"], "AddOptions"),
            Step("GATHER", ["rows", "i"], ["row"], "GatherOptions"),
            Step("FULLY_CONNECTED", ["s", "w"], ["product"], "FullyConnectedOptions"),
            Step("ADD", ["product", "row"], ["sum"], "AddOptions"),
            Step("TANH", ["sum"], ["new"]),
        ],
        list(arguments), ["next", "new", "rows"],
    )  # fmt: skip
    return tflite_model(values, [loop], ["x"], ["state"], [condition, body])


def branches(threshold: float = 0.0) -> bytes:
    """y = x * 2 or -x, as the sum of x is above the threshold or not."""
    values = {
        "x": Value((2, 3)), "axes": constant([0, 1]), "sum": Value(()), "y": Value((2, 3)),
        "least": constant(threshold, "float32"), "flag": Value((), "bool"),
    }  # fmt: skip
    steps = [
        Step("SUM", ["x", "axes"], ["sum"], "ReducerOptions"),
        Step("GREATER", ["sum", "least"], ["flag"]),
        Step("IF", ["flag", "x"], ["y"], "IfOptions",
             {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}),
    ]  # fmt: skip
    pair = {"x": Value((2, 3)), "y": Value((2, 3))}
    double = Subgraph(
        {**pair, "two": constant(2, "float32")}, [Step("MUL", ["x", "two"], ["y"], "MulOptions")],
        ["x"], ["y"],
    )  # fmt: skip
    negative = Subgraph(pair, [Step("NEG", ["x"], ["y"])], ["x"], ["y"])
    return tflite_model(values, steps, ["x"], ["y"], [double, negative])


def composite() -> bytes:
    """y = relu(-x), under a name that only some runtimes know."""
    pair = {"x": Value((2, 3)), "y": Value((2, 3))}
    inner = Subgraph(
        {**pair, "n": Value((2, 3))}, [Step("NEG", ["x"], ["n"]), Step("RELU", ["n"], ["y"])],
        ["x"], ["y"],
    )  # fmt: skip
    step = Step(
        "STABLEHLO_COMPOSITE", ["x"], ["y"], "StableHLOCompositeOptions",
        {"name": "odml.some", "decompositionSubgraphIndex": 1, "compositeAttributes": NOTHING},
    )  # fmt: skip
    return tflite_model(pair, [step], ["x"], ["y"], [inner])


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (recurrence(4), (4, 3)),
        (recurrence(0), (4, 3)),
        (branches(), (2, 3)),
        (composite(), (2, 3)),
    ],
    ids=["WHILE", "WHILE without a step", "IF", "STABLEHLO_COMPOSITE"],
)
def test_gives_the_numbers_of_litert(model: bytes, shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    imported = import_tflite(path)
    half = RNG.uniform(0.1, 1, (1, *shape)).astype(np.float32)
    x = np.concatenate([half, -half])
    want = run_original(path, ModelFormat.TFLITE, imported.signature, {"x": x})
    run = on_host(imported.graph)
    (name,) = (spec.name for spec in imported.signature.outputs)
    for index in range(2):
        np.testing.assert_allclose(run(x[index])[0], want[name][index], rtol=2e-5, atol=2e-5)
    # Each node of the report is an operator of the first graph.
    operators = {node.index for node in imported.graph.nodes}
    bound = [imported.graph.origin_of(b.var) for b in imported.graph.bindings if b.call is not None]
    assert all(origin <= operators for origin in bound)


def test_a_loop_has_its_weights_once(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(recurrence(4))
    graph = import_tflite(path).graph
    products = [b.value for b in graph.bindings if b.op_name == "relax.matmul"]
    assert len(products) == 4
    assert all(call.args[1].same_as(products[0].args[1]) for call in products)


def counting(end: int, begins_at: int | None) -> bytes:
    """Counts up to a number, from another or from the input."""
    values = {"x": COUNTER, "y": COUNTER, "start": constant(begins_at or 0)}
    first = "x" if begins_at is None else "start"
    loop = Step(
        "WHILE", [first], ["y"], "WhileOptions", {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    )
    condition = Subgraph(
        {"i": COUNTER, "end": constant(end), "goes": Value((), "bool")},
        [Step("LESS", ["i", "end"], ["goes"])], ["i"], ["goes"],
    )  # fmt: skip
    body = Subgraph(
        {"i": COUNTER, "one": constant(1), "next": COUNTER},
        [Step("ADD", ["i", "one"], ["next"], "AddOptions")], ["i"], ["next"],
    )  # fmt: skip
    return tflite_model(values, [loop], ["x"], ["y"], [condition, body])


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (counting(5000, begins_at=0), "a loop of more than 1024 steps"),
        (counting(9, begins_at=None), "runs until computed values end it"),
    ],
    ids=["long", "by values"],
)
def test_a_loop_whose_length_is_not_known_is_refused(
    model: bytes, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    with pytest.raises(NnfarmError, match=sentence) as caught:
        import_tflite(path)
    assert caught.value.code == "compile.unsupported_operation"


def test_a_graph_that_calls_itself_is_refused(tmp_path: Path) -> None:
    pair = {"x": Value((2, 3)), "y": Value((2, 3))}
    step = Step("CALL", ["x"], ["y"], "CallOptions", {"subgraph": 0})
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite_model(pair, [step], ["x"], ["y"]))
    with pytest.raises(NnfarmError, match="call each other without end") as caught:
        import_tflite(path)
    assert caught.value.code == "compile.unsupported_model"
