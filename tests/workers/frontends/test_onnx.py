"""The ONNX importer: names kept, old opsets lifted, bad models refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax

from service.contracts.errors import NnfarmError
from tests.workers.onnx_models import make_model, single, weights
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise


def _saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def _run_on_host(path: Path, *inputs: np.ndarray) -> np.ndarray:
    graph = normalise(import_onnx(path).graph)
    target = tvm.target.Target({"kind": "llvm"})
    machine = relax.VirtualMachine(relax.build(graph.module, target), tvm.cpu())
    answer: np.ndarray = machine["main"](*map(tvm.runtime.tensor, inputs)).numpy()
    return answer


def test_every_binding_knows_its_node(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="first/conv"),
        helper.make_node("HardSwish", ["c"], ["h"], name="first/act"),
        helper.make_node("GlobalAveragePool", ["h"], ["g"]),
        helper.make_node("Flatten", ["g"], ["y"], name="flatten"),
    ]
    constants = {"w": weights(6, 4, 3, 3), "b": weights(6)}
    path = _saved(make_model(nodes, {"x": [1, 4, 8, 8]}, ["y"], constants), tmp_path)
    graph = import_onnx(path).graph
    assert [n.name for n in graph.nodes] == ["first/conv", "first/act", "g", "flatten"]
    calls = [b for b in graph.bindings if b.call is not None]
    named = [{graph.nodes[i].name for i in graph.origin_of(b.var)} for b in calls]
    assert all(len(names) == 1 for names in named)
    assert {n for names in named for n in names} == {"first/conv", "first/act", "g", "flatten"}
    after = normalise(graph)
    lost = [b.op_name for b in after.bindings if b.call is not None and not after.origin_of(b.var)]
    assert lost == ["relax.permute_dims"]  # the one change of layout, of no node


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 22])
def test_opsets_give_the_numbers_of_onnx_runtime(opset: int, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "k", "o"], ["l"], name="gemm"),
        helper.make_node("Softmax", ["l"], ["y"], name="softmax", axis=1),
    ]
    constants = {
        "w": weights(6, 3, 3, 3),
        "b": weights(6),
        "g": weights(6, seed=1),
        "m": weights(6, seed=2),
        "v": np.abs(weights(6, seed=3)) + 0.5,
        "k": weights(96, 5),
        "o": weights(5),
    }
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], constants, opset)
    path = _saved(model, tmp_path)
    image = weights(1, 3, 8, 8, seed=9)
    expected = onnxruntime.InferenceSession(path).run(None, {"x": image})[0]
    np.testing.assert_allclose(_run_on_host(path, image), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        single("Clip", {"x": [2, 3]}, opset=7, min=0.0, max=6.0),
        single("Pad", {"x": [2, 3]}, opset=7, pads=[0, 1, 0, 2]),
        single("Slice", {"x": [4, 6]}, opset=7, axes=[1], starts=[1], ends=[-1]),
        single("Upsample", {"x": [1, 2, 4, 4]}, {"s": np.array([1, 1, 2, 2], np.float32)}, opset=9),
    ],
    ids=["clip", "pad", "slice", "upsample"],
)
def test_attributes_of_old_opsets_are_read(model: onnx.ModelProto, tmp_path: Path) -> None:
    path = _saved(model, tmp_path)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    data = weights(*shape, seed=3) * 5
    expected = onnxruntime.InferenceSession(path).run(None, {"x": data})[0]
    np.testing.assert_allclose(_run_on_host(path, data), expected, rtol=1e-6)


def test_an_operation_the_importer_lacks_is_named(tmp_path: Path) -> None:
    model = _loop_model()
    with pytest.raises(NnfarmError) as caught:
        import_onnx(_saved(model, tmp_path))
    assert caught.value.code in ("compile.unsupported_operation", "compile.unsupported_model")
    assert "Loop" in caught.value.detail


def _loop_model() -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["keep"], ["again"]),
            helper.make_node("Add", ["state", "state"], ["next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("keep", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [2]),
        ],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)
    graph = helper.make_graph(
        [node],
        "loop",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [helper.make_tensor("n", TensorProto.INT64, [], [3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_truncated_file_is_unreadable(tmp_path: Path) -> None:
    path = _saved(single("Relu", {"x": [2, 3]}), tmp_path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(NnfarmError) as caught:
        import_onnx(path)
    assert caught.value.code == "model.unreadable"


@pytest.mark.parametrize(
    ("shape", "wanted", "fixed"),
    [
        (["batch", 3], {}, (1, 3)),
        (["anything", 3, 8, 8], {}, (1, 3, 8, 8)),
        (["sequence", 3], {}, (-1, 3)),
        (["sequence", 3], {"x": (7, 3)}, (7, 3)),
        (["batch", 3], {"x": (2, 3)}, (2, 3)),
    ],
)
def test_open_dimensions_of_inputs(
    shape: list[int | str],
    wanted: dict[str, tuple[int, ...]],
    fixed: tuple[int, ...],
    tmp_path: Path,
) -> None:
    path = _saved(single("Relu", {"x": shape}), tmp_path)
    signature = import_onnx(path, wanted).signature
    assert signature.inputs[0].shape == signature.outputs[0].shape == fixed


@pytest.mark.parametrize("wanted", [{"z": (1, 3)}, {"x": (1, 4)}, {"x": (1, 3, 1)}])
def test_input_shapes_that_do_not_fit_are_refused(
    wanted: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    path = _saved(single("Relu", {"x": ["batch", 3]}), tmp_path)
    with pytest.raises(NnfarmError) as caught:
        import_onnx(path, wanted)
    assert caught.value.code == "compile.bad_option"


def test_what_needs_an_open_dimension_names_the_inputs(tmp_path: Path) -> None:
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="recurrent", hidden_size=3)
    constants = {"w": weights(1, 12, 4), "r": weights(1, 12, 3)}
    model = make_model([node], {"x": ["steps", 2, 4]}, ["y"], constants)
    with pytest.raises(NnfarmError, match=r"give shapes of: 'x' \[steps, 2, 4\]") as caught:
        import_onnx(_saved(model, tmp_path))
    assert caught.value.details["node"] == "recurrent"


def test_bounds_computed_from_the_shape_become_constant(tmp_path: Path) -> None:
    """What PyTorch exports for `chunk`: half of a dimension, asked of the tensor itself."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], name="shape"),
        helper.make_node("Gather", ["s", "one"], ["n"], name="channels", axis=0),
        helper.make_node("Div", ["n", "two"], ["h"], name="half"),
        helper.make_node("Slice", ["x", "zero", "h", "one"], ["y"], name="slice"),
    ]
    constants = {name: np.array([v], np.int64) for name, v in (("zero", 0), ("one", 1), ("two", 2))}
    graph = helper.make_graph(
        nodes,
        "chunk",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [onnx.numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = _saved(model, tmp_path)
    after = normalise(import_onnx(path).graph)
    assert [b.op_name for b in after.bindings if b.call is not None] == ["relax.strided_slice"]
    data = weights(2, 6)
    np.testing.assert_array_equal(_run_on_host(path, data), data[:, :3])
