"""ONNX operations one by one: ONNX Runtime's numbers, and no opaque code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.contracts.errors import NnfarmError
from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, single, weights
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise

I64 = TensorProto.INT64


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def recurrent(op: str, gates: int, directions: int = 1, **more: Any) -> onnx.ModelProto:
    constants = {
        "w": weights(directions, gates * 3, 4),
        "r": weights(directions, gates * 3, 3, seed=1),
        "b": weights(directions, gates * 6, seed=2),
    }
    outputs = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    return single(op, {"x": [5, 2, 4]}, constants, outputs=outputs, hidden_size=3, **more)


def with_states(op: str, gates: int) -> onnx.ModelProto:
    constants = {"w": weights(1, gates * 3, 4), "r": weights(1, gates * 3, 3, seed=1)}
    inputs = {"x": [5, 2, 4], "h0": [1, 2, 3], "c0": [1, 2, 3]}
    args = ["x", "w", "r", "", "", "h0", "c0"]
    outputs = ["y", "h", "c"]
    return single(op, inputs, constants, args, outputs, hidden_size=3)


def _range_to_an_input() -> onnx.ModelProto:
    constants = [numpy_helper.from_array(np.array(n), name) for n, name in ((0, "a"), (1, "c"))]
    graph = helper.make_graph(
        [helper.make_node("Range", ["a", "b", "c"], ["y"], name="range")],
        "case",
        [helper.make_tensor_value_info("b", I64, [])],
        [helper.make_tensor_value_info("y", I64, ["n"])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


PADS = ints(0, 0, 1, 2, 0, 0, 2, 1)
IMAGE = {"x": [1, 2, 5, 5]}
PAIR = {"x": [2, 3], "z": [2, 3]}
CUBE = {"x": [2, 3, 4]}
NORM = {"s": weights(8), "b": weights(8)}

HEADS = {"q": [1, 4, 5, 8], "k": [1, 2, 6, 8], "v": [1, 2, 6, 8]}
FLAT_HEADS = {"q": [1, 5, 24], "k": [1, 6, 12], "v": [1, 6, 12]}
SOME = np.arange(30).reshape(5, 6) % 4 > 0

MODELS = {
    "attention": single("Attention", HEADS, opset=23),
    "attention causal": single(
        "Attention", FLAT_HEADS, opset=23, q_num_heads=4, kv_num_heads=2, is_causal=1
    ),
    "attention masked": single(
        "Attention", FLAT_HEADS, {"m": SOME}, opset=23, q_num_heads=4, kv_num_heads=2,
        scale=0.3, softcap=2.0,
    ),
    "attention biased": single("Attention", HEADS, {"m": weights(5, 6)}, opset=23),
    "rotary embedding": single(
        "RotaryEmbedding", {"x": [1, 6, 24]}, {"c": weights(1, 6, 4), "s": weights(1, 6, 4)},
        opset=23, num_heads=3,
    ),
    "layer norm all axes": single(
        "LayerNormalization", {"x": [2, 3, 8]}, {"s": weights(2, 3, 8)}, axis=0
    ),
    "layer norm short scale": single("LayerNormalization", {"x": [2, 3, 8]}, NORM, axis=1),
    "layer norm statistics": single(
        "LayerNormalization", {"x": [2, 3, 8]}, NORM, outputs=["y", "mean", "deviation"]
    ),
    "lstm": recurrent("LSTM", 4),
    "lstm reverse": recurrent("LSTM", 4, direction="reverse"),
    "lstm both ways": recurrent("LSTM", 4, 2, direction="bidirectional"),
    "lstm states": with_states("LSTM", 4),
    "gru": recurrent("GRU", 3),
    "gru linear": recurrent("GRU", 3, 2, linear_before_reset=1, direction="bidirectional"),
    "rnn": recurrent("RNN", 1),
    "rnn relu": recurrent("RNN", 1, activations=["Relu"]),
    "einsum": single("Einsum", {"a": [2, 3, 4], "b": [2, 4, 5]}, equation="bij,bjk->bik"),
    "einsum heads": single(
        "Einsum", {"a": [2, 3, 4, 5], "b": [2, 6, 4, 5]}, equation="bqhd,bkhd->bhqk"
    ),
    "einsum several": single(
        "Einsum", {"a": [2, 3, 4], "b": [3, 4, 5, 6]}, equation="aij,ijkl->alk"
    ),
    "layer norm": single("LayerNormalization", {"x": [2, 3, 8]}, NORM, axis=-1),
    "instance norm": single("InstanceNormalization", {"x": [2, 8, 4, 4]}, NORM),
    "batch norm": single(
        "BatchNormalization", {"x": [1, 8, 4, 4]},
        {**NORM, "m": weights(8, seed=1), "v": np.abs(weights(8)) + 0.1},
    ),
    "lrn": single("LRN", {"x": [1, 6, 4, 4]}, size=3, alpha=0.3, beta=0.75, bias=1.5),
    "lp norm": single("LpNormalization", {"x": [2, 3]}, axis=1),
    "gelu": single("Gelu", {"x": [2, 3]}, opset=20),
    "gelu tanh": single("Gelu", {"x": [2, 3]}, opset=20, approximate="tanh"),
    "celu": single("Celu", {"x": [2, 3]}, alpha=0.7),
    "swish": single("Swish", {"x": [2, 3]}, opset=24, alpha=0.5),
    **{op: single(op, {"x": [2, 3]}) for op in (
        "Elu", "Erf", "HardSigmoid", "HardSwish", "Hardmax", "LeakyRelu", "LogSoftmax",
        "Reciprocal", "Round", "Selu", "Sign", "Softplus", "Softsign", "ThresholdedRelu",
        "Identity",
    )},
    **{op: single(op, PAIR) for op in ("Mean", "Sum", "Max", "Min")},
    "mean of three": single("Mean", {**PAIR, "q": [3]}),
    "prelu": single("PRelu", {"x": [1, 3, 4, 4]}, {"s": weights(3, 1, 1)}),
    "power of an integer": single("Pow", {"x": [2, 3]}, {"e": ints(2).reshape(())}),
    "softmax": single("Softmax", CUBE, axis=1),
    "old softmax": single("Softmax", CUBE, opset=11, axis=1),
    "depth to space": single("DepthToSpace", {"x": [1, 8, 2, 3]}, blocksize=2),
    "depth to space crd": single("DepthToSpace", {"x": [1, 8, 2, 3]}, blocksize=2, mode="CRD"),
    "space to depth": single("SpaceToDepth", {"x": [1, 2, 4, 6]}, blocksize=2),
    "top k": single(
        "TopK", {"x": [2, 9]}, {"k": ints(3)}, outputs=["y", "i"], output_types={"i": I64}
    ),
    "arg max": single("ArgMax", CUBE, axis=1, keepdims=0, output_types={"y": I64}),
    "arg min": single("ArgMin", CUBE, axis=-1, output_types={"y": I64}),
    "where": single(
        "Where", {"a": [2, 3], "b": [2, 3]}, {"m": np.array([[True, False, True]])},
        ["m", "a", "b"],
    ),
    "gather": single("Gather", {"x": [4, 5]}, {"i": ints(0, -1, 2)}, axis=1),
    "gather nd": single("GatherND", {"x": [4, 5, 2]}, {"i": np.array([[0, 1], [-1, 3]])}),
    "gather elements": single("GatherElements", {"x": [2, 3]}, {"i": np.array([[0, -1]])}, axis=1),
    "scatter nd": single(
        "ScatterND", {"x": [4, 5]}, {"i": np.array([[0], [2]]), "u": weights(2, 5)}
    ),
    "slice": single("Slice", {"x": [4, 6]}, {"s": ints(1), "e": ints(-1), "a": ints(1)}),
    "slice backwards": single(
        "Slice", {"x": [4, 6]}, {"s": ints(-1), "e": ints(-99), "a": ints(1), "t": ints(-2)}
    ),
    "split": single("Split", {"x": [4, 6]}, {"n": ints(2, 4)}, outputs=["y", "z"], axis=1),
    "tile": single("Tile", {"x": [4, 6]}, {"n": ints(2, 1)}),
    "expand": single("Expand", {"x": [4, 1]}, {"n": ints(2, 4, 3)}),
    "pad reflect": single("Pad", IMAGE, {"p": PADS}, mode="reflect"),
    "pad edge": single("Pad", IMAGE, {"p": PADS}, mode="edge"),
    "pad wrap": single("Pad", IMAGE, {"p": PADS}, mode="wrap", opset=19),
    "pad less": single("Pad", IMAGE, {"p": ints(0, 0, -1, 2, 0, 0, 2, -1)}),
    "reduce l1": single("ReduceL1", CUBE, axes=[1]),
    "reduce l2": single("ReduceL2", CUBE, axes=[1]),
    "reduce log sum": single("ReduceLogSumExp", CUBE, axes=[1]),
    "reduce product": single("ReduceProd", CUBE, axes=[1]),
    "reduce max": single("ReduceMax", CUBE, {"a": ints(1)}, opset=18),
    "cumulative sum": single("CumSum", {"x": [2, 3]}, {"a": ints(1).reshape(())}),
    "resize corners": single(
        "Resize", IMAGE, {"s": ints(1, 2, 7, 9)}, ["x", "", "", "s"], mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
    "resize nearest": single(
        "Resize", IMAGE, {"s": ints(1, 2, 10, 10)}, ["x", "", "", "s"], mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    ),
    **{f"resize {mode} {frame}": single(
        "Resize", IMAGE, {"s": np.array([1, 1, 1.7, 0.6], np.float32)}, ["x", "", "s"], mode=mode,
        coordinate_transformation_mode=frame, opset=19,
    ) for mode, frame in (
        ("cubic", "half_pixel"), ("cubic", "asymmetric"), ("linear", "half_pixel_symmetric"),
        ("linear", "pytorch_half_pixel"), ("nearest", "half_pixel"),
    )},
    # 5 times 1.4 is 7 in float32, and 3 divided by 0.6 is 5.
    **{f"resize rounded {mode}": single(
        "Resize", {"x": [1, 2, 7, 5]}, {"s": np.array([1, 1, 0.6, 1.4], np.float32)},
        ["x", "", "s"], mode=mode, coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ) for mode in ("linear", "nearest")},
    # A quotient of sizes and the scale that it is the inverse of round to different neighbours.
    **{f"resize nearest {frame}": single(
        "Resize", {"x": [1, 2, *shape]}, {"s": ints(1, 2, *sizes)}, ["x", "", "", "s"],
        mode="nearest", coordinate_transformation_mode=frame, nearest_mode=rounding,
    ) for frame, rounding, shape, sizes in (
        ("asymmetric", "floor", (14, 20), (2, 12)),
        ("half_pixel", "round_prefer_floor", (4, 6), (14, 21)),
        ("align_corners", "floor", (2, 3), (42, 48)),
    )},
    "resize antialias": single(
        "Resize", IMAGE, {"s": ints(1, 2, 3, 4)}, ["x", "", "", "s"], mode="linear", opset=18,
        antialias=1,
    ),
    "resize axes": single(
        "Resize", IMAGE, {"s": ints(10, 20)}, ["x", "", "", "s"], mode="linear", opset=18,
        axes=[2, 3], keep_aspect_ratio_policy="not_larger",
    ),
    "col2im": single(
        "Col2Im", {"x": [1, 8, 9]}, {"i": ints(5, 5), "k": ints(2, 2)}, opset=18,
        strides=[2, 2], pads=[0, 0, 1, 1],
    ),
    "transposed conv to a shape": single(
        "ConvTranspose", {"x": [1, 4, 3, 3]}, {"w": weights(4, 6, 3, 3)}, strides=[3, 2],
        output_shape=[10, 6],
    ),
    "attention past": single(
        "Attention", {**HEADS, "pk": [1, 2, 3, 8], "pv": [1, 2, 3, 8]}, None,
        ["q", "k", "v", "", "pk", "pv"], ["y", "k2", "v2"], opset=23, is_causal=1,
    ),
    "gru of one step": single(
        "GRU", {"x": [1, 2, 4]}, {"w": weights(1, 9, 4), "r": weights(1, 9, 3, seed=1)},
        outputs=["y", "h"], hidden_size=3,
    ),
    "conv 1d": single("Conv", {"x": [1, 4, 9]}, {"w": weights(6, 4, 3), "b": weights(6)}),
    "transposed conv": single(
        "ConvTranspose", {"x": [1, 4, 5, 5]}, {"w": weights(4, 6, 3, 3), "b": weights(6)},
        strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1],
    ),
    "pool 1d": single("MaxPool", {"x": [1, 4, 9]}, kernel_shape=[2], strides=[2]),
    "pool ceil": single(
        "AveragePool", {"x": [1, 4, 9, 9]}, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1
    ),
    "gemm": single(
        "Gemm", {"x": [3, 2]}, {"w": weights(4, 3), "b": weights(4)}, transA=1, transB=1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_operation_gives_the_numbers_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODELS[name], path)
    session = onnxruntime.InferenceSession(path)
    data = {i.name: weights(*i.shape, seed=n + 3) * 2 for n, i in enumerate(session.get_inputs())}
    graph = import_onnx(path).graph
    answers = on_host(graph)(*data.values())
    for got, want in zip(answers, session.run(None, data), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    opaque = [b.op_name for b in graph.bindings if b.op_name == "relax.call_tir"]
    assert not opaque
    assert {i for b in graph.bindings for i in graph.origin_of(b.var)} <= {0}


@pytest.mark.parametrize(
    ("begin", "end", "step"), [(-1, -99, -2), (3, 0, -1), (99, -4, -1), (1, 1, 1), (-3, 99, 2)]
)
def test_numbers_cut_from_a_constant_are_constant(
    begin: int, end: int, step: int, tmp_path: Path
) -> None:
    """As exporters compute the widths of a Pad."""
    nodes = [
        helper.make_node("Concat", ["a", "a"], ["t"], name="twice", axis=0),
        helper.make_node("Slice", ["t", "s", "e", "axes", "step"], ["c"], name="cut"),
        helper.make_node("ReduceSum", ["c"], ["r"], name="sum", keepdims=0),
        helper.make_node("Cast", ["r"], ["f"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"], name="add"),
    ]
    constants = {"a": ints(1, 20, 300), "s": ints(begin), "e": ints(end)}
    constants |= {"axes": ints(0), "step": ints(step)}
    path = tmp_path / "model.onnx"
    onnx.save(make_model(nodes, {"x": [2]}, ["y"], constants), path)
    graph, data = normalise(import_onnx(path).graph), weights(2)
    want = onnxruntime.InferenceSession(path).run(None, {"x": data})[0]
    np.testing.assert_allclose(on_host(graph)(data)[0], want)
    assert [b.op_name for b in graph.bindings if b.call is not None] == ["relax.add"]


def test_one_hot_of_any_indices(tmp_path: Path) -> None:
    constants = {"d": ints(4).reshape(()), "v": np.array([-1, 2], np.float32)}
    path = tmp_path / "model.onnx"
    model = single("OneHot", {"i": [2, 3]}, constants, ["i", "d", "v"])
    model.graph.input[0].type.tensor_type.elem_type = I64
    onnx.save(model, path)
    indices = np.array([[0, 3, -1], [9, -4, -5]])
    want = onnxruntime.InferenceSession(path).run(None, {"i": indices})[0]
    (got,) = on_host(import_onnx(path).graph)(indices)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


@pytest.mark.parametrize("signs", [(1, 0), (0, 1), (0, 0)])
def test_infinities_of_one_sign(signs: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model = single(
        "IsInf",
        {"x": [4]},
        output_types={"y": TensorProto.BOOL},
        detect_positive=signs[0],
        detect_negative=signs[1],
    )
    onnx.save(model, path)
    (got,) = on_host(import_onnx(path).graph)(np.array([1, np.inf, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(got, [False, bool(signs[0]), bool(signs[1]), False])


def test_half_precision_stays_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model = single("Conv", {"x": [1, 4, 9, 9]}, {"w": weights(6, 4, 3, 3).astype(np.float16)})
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(model, path)
    imported = import_onnx(path)
    assert imported.signature.inputs[0].dtype == "float16"
    image = weights(1, 4, 9, 9).astype(np.float16)
    want = onnxruntime.InferenceSession(path).run(None, {"x": image})[0]
    (got,) = on_host(imported.graph)(image)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), atol=2e-2)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (recurrent("LSTM", 4, activations=["Tanh", "Tanh", "Tanh"]), "activations"),
        (recurrent("LSTM", 4, clip=1.0), "clipping"),
        (
            single(
                "Attention",
                HEADS,
                {"p": weights(1, 2, 3, 8)},
                ["q", "k", "v", "", "p", "p"],
                ["y", "a", "b", "c"],
                opset=23,
            ),
            "scores as an output",
        ),
        (_range_to_an_input(), "depends on values"),
    ],
)
def test_what_an_operation_cannot_have_is_said(
    model: onnx.ModelProto, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.raises(NnfarmError, match=words) as caught:
        import_onnx(path)
    assert caught.value.code == "compile.unsupported_model"
