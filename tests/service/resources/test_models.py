from __future__ import annotations

import hashlib
import io
import itertools
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from service.contracts.errors import NnfarmError
from service.resources.models.inspection import inspect_file
from tests.service.farm import Farm
from tests.workers.tflite_models import Step, Subgraph, Value, tflite_model

Serve = Callable[..., Farm]


def make_model(
    nodes: list[onnx.NodeProto] | None = None,
    *,
    opset: int = 17,
    shape: list[Any] | None = None,
    outputs: tuple[str, ...] = ("y",),
) -> ModelProto:
    """x -> Relu -> y, unless told otherwise."""
    nodes = nodes or [helper.make_node("Relu", ["x"], ["y"], name="act")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, shape or ["batch", 4])],
        [value(name, TensorProto.FLOAT, shape or ["batch", 4]) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def with_weight(location: str | None) -> ModelProto:
    model = make_model([helper.make_node("Add", ["x", "w"], ["y"], name="sum")])
    weight = numpy_helper.from_array(np.ones(4, np.float32), "w")
    if location is not None:
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=location)
    model.graph.initializer.append(weight)
    return model


def node(op_type: str, needs: list[str], makes: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, needs, makes, name=f"make_{makes[0]}", **attributes)


def cyclic() -> ModelProto:
    return make_model(
        [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]
    )


def out_of_order() -> ModelProto:
    return make_model([node("Relu", ["a"], ["y"]), node("Relu", ["x"], ["a"])])


def with_bad_dim(dim: int) -> ModelProto:
    model = make_model(shape=[1, 4])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = dim
    return model


def without_graph() -> ModelProto:
    model = make_model()
    model.ClearField("graph")
    return model


def unknown_inside_if() -> ModelProto:
    """The unknown operation hides in a branch."""
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, ["batch", 4])
    good = helper.make_graph([node("Relu", ["x"], ["t"])], "then", [], [value])
    bad = helper.make_graph([node("Frobnicate", ["x"], ["t"])], "else", [], [value])
    constant = node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    return make_model([constant, node("If", ["c"], ["y"], then_branch=good, else_branch=bad)])


def unknown_inside_function() -> ModelProto:
    """The model's own operation is fine by itself; what it is made of is not."""
    opsets = [helper.make_opsetid("", 17)]
    body = [node("Frobnicate", ["a"], ["b"])]
    function = helper.make_function("own", "Mine", ["a"], ["b"], body, opsets)
    model = make_model([node("Mine", ["x"], ["y"], domain="own")])
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(function)
    return model


CASES: list[tuple[str, Callable[[], bytes], str, str]] = [
    ("empty", lambda: b"", "model.empty", "0 bytes"),
    ("text", lambda: b"this is no model\n" * 9, "model.unreadable", "damaged"),
    (
        "truncated",
        lambda: with_weight(None).SerializeToString()[:-9],
        "model.unreadable",
        "damaged",
    ),
    ("no graph", lambda: without_graph().SerializeToString(), "model.unreadable", "no ONNX graph"),
    ("old", lambda: make_model(opset=6).SerializeToString(), "model.unsupported_opset", "opset 6"),
    (
        "future",
        lambda: make_model(opset=999).SerializeToString(),
        "model.unsupported_opset",
        "opset 999",
    ),
    (
        "external data",
        lambda: with_weight("weights.bin").SerializeToString(),
        "model.external_data_missing",
        "'weights.bin'",
    ),
    (
        "external data outside",
        lambda: with_weight("../../etc/passwd").SerializeToString(),
        "model.external_data_escapes",
        "outside",
    ),
    (
        "absolute external data",
        lambda: with_weight("/etc/passwd").SerializeToString(),
        "model.external_data_escapes",
        "outside",
    ),
    ("cycle", lambda: cyclic().SerializeToString(), "model.cyclic", "on a cycle"),
    ("order", lambda: out_of_order().SerializeToString(), "model.cyclic", "topological order"),
    (
        "unknown operation",
        lambda: make_model([node("Frobnicate", ["x"], ["y"])]).SerializeToString(),
        "model.unknown_operation",
        "Frobnicate",
    ),
    (
        "unknown domain",
        lambda: make_model([node("Relu", ["x"], ["y"], domain="com.example")]).SerializeToString(),
        "model.unknown_operation",
        "com.example.Relu",
    ),
    (
        "unknown operation in a branch",
        lambda: unknown_inside_if().SerializeToString(),
        "model.unknown_operation",
        "Frobnicate",
    ),
    (
        "unknown operation in a function",
        lambda: unknown_inside_function().SerializeToString(),
        "model.unknown_operation",
        "Frobnicate",
    ),
    (
        "operation newer than the opset",
        lambda: make_model([node("Gelu", ["x"], ["y"])], opset=17).SerializeToString(),
        "model.unknown_operation",
        "opset 17",
    ),
    (
        "negative dimension",
        lambda: with_bad_dim(-5).SerializeToString(),
        "model.bad_dimension",
        "-5",
    ),
    (
        "huge dimension",
        lambda: with_bad_dim(2**31).SerializeToString(),
        "model.bad_dimension",
        str(2**31),
    ),
    (
        "huge tensor",
        lambda: make_model(shape=[65536, 65536]).SerializeToString(),
        "model.bad_dimension",
        "elements",
    ),
    (
        "no outputs",
        lambda: make_model(outputs=()).SerializeToString(),
        "model.invalid",
        "no outputs",
    ),
    (
        "output nobody makes",
        lambda: make_model(outputs=("z",)).SerializeToString(),
        "model.invalid",
        "'z'",
    ),
    (
        "input nobody makes",
        lambda: make_model([node("Relu", ["ghost"], ["y"])]).SerializeToString(),
        "model.invalid",
        "'ghost'",
    ),
    (
        "tensor made twice",
        lambda: make_model(
            [node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])]
        ).SerializeToString(),
        "model.invalid",
        "made twice",
    ),
    (
        "wrong attribute",
        lambda: make_model([node("Relu", ["x"], ["y"], slope=1)]).SerializeToString(),
        "model.invalid",
        "slope",
    ),
]


@pytest.mark.parametrize(
    ("content", "code", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_bad_model_is_refused_with_its_reason(
    tmp_path: Path, content: Callable[[], bytes], code: str, words: str
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content())
    with pytest.raises(NnfarmError) as caught:
        inspect_file(file)
    assert caught.value.code == code
    assert words in caught.value.detail


def test_cycle_names_a_node_on_it(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(cyclic().SerializeToString())
    with pytest.raises(NnfarmError) as caught:
        inspect_file(file)
    assert caught.value.details["node"] in ("make_a", "make_b")  # make_y only hangs on the cycle


def test_long_chain_is_inspected(tmp_path: Path) -> None:
    names = ["x", *(f"t{number}" for number in range(5000)), "y"]
    nodes = [node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    file = tmp_path / "model.onnx"
    file.write_bytes(make_model(nodes).SerializeToString())
    assert inspect_file(file).outputs[0].name == "y"


def upload(farm: Farm, content: bytes, **headers: str) -> httpx.Response:
    return farm.client.post("/v1/models", files={"file": ("tiny.onnx", content)}, headers=headers)


def test_upload_gives_the_signature_and_the_bytes_back(farm: Farm) -> None:
    content = with_weight(None).SerializeToString()
    sha256 = hashlib.sha256(content).hexdigest()
    answer = upload(farm, content, **{"X-Content-SHA256": sha256})
    assert answer.status_code == 201, answer.text
    model = answer.json()
    assert (model["name"], model["format"], model["sha256"]) == ("tiny", "onnx", sha256)
    # The weight is an initializer, not an input; the symbolic dimension is -1.
    assert model["signature"]["inputs"] == [{"name": "x", "dtype": "float32", "shape": [-1, 4]}]
    assert farm.client.get(f"/v1/models/{model['id']}/content").content == content
    again = upload(farm, content)
    assert (again.status_code, again.json()["id"]) == (200, model["id"])
    assert [item["id"] for item in farm.get("/v1/models")["items"]] == [model["id"]]


def test_refusal_comes_from_the_child_process_too(lite_farm: Farm) -> None:
    answer = upload(lite_farm, cyclic().SerializeToString())
    assert (answer.status_code, answer.json()["code"]) == (422, "model.cyclic")


def test_child_that_hits_a_limit_is_a_refusal(start: Serve) -> None:
    farm = start(inspection_memory_bytes=64 << 20)
    answer = upload(farm, make_model().SerializeToString())
    assert (answer.status_code, answer.json()["code"]) == (422, "model.unreadable")


def test_wrong_hash_is_refused(lite_farm: Farm) -> None:
    answer = upload(lite_farm, b"bytes", **{"X-Content-SHA256": "0" * 64})
    assert (answer.status_code, answer.json()["code"]) == (422, "request.hash_mismatch")


def test_size_limit_ends_the_upload_early(start: Serve, tmp_path: Path) -> None:
    farm = start(max_model_bytes=1000)
    answer = upload(farm, b"x" * 100_000)
    assert (answer.status_code, answer.json()["code"]) == (413, "model.too_large")
    assert answer.json()["details"]["limit_bytes"] == 1000
    assert list((tmp_path / "blobs" / "incoming").iterdir()) == []


@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        (b"x", "application/octet-stream", "multipart/form-data"),
        (b"x", "multipart/form-data", "boundary"),
        (b"no parts at all", "multipart/form-data; boundary=b", "damaged"),
        (b'--b\r\nContent-Disposition: form-data; name="file"; filename="m"\r\n\r\nabc',
         "multipart/form-data; boundary=b", "ends too early"),
        (b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nabc\r\n--b--\r\n',
         "multipart/form-data; boundary=b", "no part named 'file'"),
        (b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc\r\n--b--\r\n',
         "multipart/form-data; boundary=b", "must be a file"),
    ],
)  # fmt: skip
def test_bad_forms_are_refused(lite_farm: Farm, body: bytes, content_type: str, words: str) -> None:
    headers = {"Content-Type": content_type}
    answer = lite_farm.client.post("/v1/models", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert words in answer.json()["detail"]


def tflite_content(**changes: Any) -> bytes:
    """x -> RELU -> y, unless told otherwise."""
    values = {"x": Value((1, 4), "int8", scale=0.5, zero_point=3), "y": Value((1, 4))}
    values.update(changes.get("values", {}))
    steps = changes.get("steps", [Step("DEQUANTIZE", ["x"], ["y"])])
    return tflite_model(values, steps, ["x"], changes.get("outputs", ["y"]))


def with_branches() -> bytes:
    """y = one of two further graphs of x."""
    row = Value((1, 4))
    branch = Subgraph({"a": row, "b": row}, [Step("RELU", ["a"], ["b"])], ["a"], ["b"])
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 1}
    choice = Step("IF", ["c", "x"], ["y"], "IfOptions", options)
    values = {"c": Value((), "bool"), "x": row, "y": row}
    return tflite_model(values, [choice], ["c", "x"], ["y"], [branch])


def pytorch_content(edit: Callable[[dict[str, Any]], None] | None = None, **members: str) -> bytes:
    """The members of an exported program that say what it takes and gives."""
    meta = {"dtype": 7, "sizes": [{"as_int": 1}, {"as_int": 4}]}
    program: dict[str, Any] = {
        "graph_module": {
            "graph": {"tensor_values": {"w": meta, "image": meta, "relu": meta}},
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "w"}, "parameter_name": "w"}},
                    {"user_input": {"arg": {"as_tensor": {"name": "image"}}}},
                ],
                "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "relu"}}}}],
            },
        }
    }
    if edit is not None:
        edit(program)
    weights = {"w": {"path_name": "weight_0", "use_pickle": False}}
    files = {
        "models/model.json": json.dumps(program),
        "data/weights/model_weights_config.json": json.dumps({"config": weights}),
        **members,
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            if text:
                archive.writestr(f"net/{name}", text)
    return content.getvalue()


def dynamic(program: dict[str, Any]) -> None:
    sizes = program["graph_module"]["graph"]["tensor_values"]["image"]["sizes"]
    sizes[0] = {"as_expr": {"expr_str": "s0"}}


def without_outputs(program: dict[str, Any]) -> None:
    program["graph_module"]["signature"]["output_specs"] = []


@pytest.mark.parametrize(
    ("content", "model_format", "dtype"),
    [(tflite_content(), "tflite", "int8"), (pytorch_content(), "pytorch", "float32")],
    ids=["tflite", "pytorch"],
)
def test_other_formats_are_told_by_their_bytes(
    lite_farm: Farm, content: bytes, model_format: str, dtype: str
) -> None:
    answer = upload(lite_farm, content)  # under a name that ends in .onnx
    assert answer.status_code == 201, answer.text
    model = answer.json()
    assert model["format"] == model_format
    (taken,), (given,) = model["signature"]["inputs"], model["signature"]["outputs"]
    assert (taken["dtype"], taken["shape"], given["shape"]) == (dtype, [1, 4], [1, 4])


def test_a_tflite_file_may_hold_the_graphs_it_calls(lite_farm: Farm) -> None:
    answer = upload(lite_farm, with_branches())
    assert answer.status_code == 201, answer.text
    assert [i["name"] for i in answer.json()["signature"]["inputs"]] == ["c", "x"]


def test_an_open_dimension_of_a_program_is_shown(lite_farm: Farm) -> None:
    answer = upload(lite_farm, pytorch_content(dynamic))
    assert answer.status_code == 201, answer.text
    assert answer.json()["signature"]["inputs"][0]["shape"] == [-1, 4]


PICKLED = json.dumps({"config": {"w": {"path_name": "weight_0", "use_pickle": True}}})


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (tflite_content()[:200], "model.unreadable", "damaged"),
        (tflite_content(values={"y": Value((1, 2**31 - 1, 9))}), "model.bad_dimension", "'y'"),
        (tflite_content(steps=[]), "model.invalid", "'y'"),
        (tflite_content(steps=[Step("RELU", ["y"], ["y"])]), "model.cyclic", "'y'"),
        (tflite_content(outputs=[]), "model.invalid", "no outputs"),
        (pytorch_content()[:300], "model.unreadable", "damaged"),
        (pytorch_content(without_outputs), "model.invalid", "no outputs"),
        (
            pytorch_content(**{"data/weights/model_weights_config.json": PICKLED}),
            "model.unsafe",
            "'w' is pickled",
        ),
        (
            pytorch_content(**{"models/model.json": "", "data.pkl": "x"}),
            "model.unsafe",
            "torch.export.save",
        ),
        (pytorch_content(**{"models/other.json": "{}"}), "model.invalid", "2 exported programs"),
        (pytorch_content(**{"models/model.json": "{}"}), "model.unreadable", "graph_module"),
    ],
    ids=[
        "truncated", "huge", "nobody makes", "order", "no outputs", "half a zip",
        "no results", "pickled weights", "pickled model", "two programs", "no graph",
    ],
)  # fmt: skip
def test_bad_files_of_other_formats_are_refused_with_their_reason(
    content: bytes, code: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "model"
    file.write_bytes(content)
    with pytest.raises(NnfarmError) as caught:
        inspect_file(file)
    assert caught.value.code == code
    assert words in caught.value.detail


def test_operations_of_onnx_runtimes_quantizer_are_known(tmp_path: Path) -> None:
    operands = ["x", "s", "z", "s", "z"]
    model = make_model([node("QLinearSigmoid", operands, ["y"], domain="com.microsoft")])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "s"))
    model.graph.initializer.append(numpy_helper.from_array(np.uint8(3), "z"))
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.UINT8
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    assert inspect_file(file).inputs[0].dtype == "uint8"
