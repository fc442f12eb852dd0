import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import networks
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from service.contracts.errors import NnfarmError
from service.contracts.jobs import StageEvent
from service.contracts.quantization import QuantizeOptions, QuantizeOutcome, QuantizeSpec
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from workers.quantization.job import QuantizeInput
from workers.quantization.run import run

ROOT = Path(__file__).parents[3]


def write_job(
    folder: Path,
    model: onnx.ModelProto | None = None,
    dataset: bytes | None = None,
    signature: ModelSignature = networks.SIGNATURE,
    **options: Any,
) -> QuantizeInput:
    onnx.save(model or networks.network(), folder / "model.onnx")
    (folder / "dataset.npz").write_bytes(dataset or networks.packed(image=networks.images()))
    spec = QuantizeSpec(
        quantization_id="qnt_1",
        attempt=1,
        job_token="",
        model_sha256="0" * 64,
        signature=signature,
        dataset_sha256="0" * 64,
        options=QuantizeOptions(**options),
    )
    job = QuantizeInput(
        spec=spec, model_path=folder / "model.onnx", dataset_path=folder / "dataset.npz"
    )
    (folder / "job.json").write_text(job.model_dump_json())
    return job


def quantize(folder: Path, **changes: Any) -> tuple[QuantizeOutcome, Path]:
    outcome = run(write_job(folder, **changes), folder, lambda _: None)
    return outcome, folder / "blobs" / outcome.model_sha256


def refusal(folder: Path, **changes: Any) -> NnfarmError:
    with pytest.raises(NnfarmError) as caught:
        quantize(folder, **changes)
    return caught.value


def answers(path: Path, images: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"image": image[None]})[0] for image in images])


def constants(path: Path) -> dict[str, np.ndarray]:
    graph = onnx.load(path).graph
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}


def conv_weights(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The convolution's integers and their scales."""
    nodes = onnx.load(path).graph.node
    conv = next(node for node in nodes if node.name == "conv")
    source = next(node for node in nodes if conv.input[1] in node.output)
    found = constants(path)
    return found[source.input[0]], found[source.input[1]]


@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile"])
def test_every_method_gives_a_model_that_answers_almost_the_same(
    tmp_path: Path, method: str
) -> None:
    outcome, path = quantize(tmp_path, method=method)
    assert {"QuantizeLinear", "DequantizeLinear"} <= networks.node_types(path)
    assert 0 < outcome.quantized_count <= outcome.operation_count
    images = networks.images()
    wanted, found = answers(tmp_path / "model.onnx", images), answers(path, images)
    # The cost is measured here a second time, without the code that reported it.
    assert outcome.cost.max_abs_error == pytest.approx(np.abs(wanted - found).max(), abs=1e-6)
    agreement = np.mean(wanted.argmax(1) == found.argmax(1))
    assert outcome.cost.agreement == pytest.approx(agreement)
    assert outcome.cost.loss == pytest.approx(1 - agreement)
    assert (outcome.cost.float_top1, outcome.cost.sample_count) == (None, 40)
    assert outcome.cost.max_abs_error < 0.2
    assert outcome.model_size_bytes == path.stat().st_size


def test_labels_give_top1_of_both_models(tmp_path: Path) -> None:
    images = networks.images()
    onnx.save(networks.network(), tmp_path / "model.onnx")
    labels = answers(tmp_path / "model.onnx", images).argmax(1)
    labels[:4] = (labels[:4] + 1) % 4
    outcome, _ = quantize(tmp_path, dataset=networks.packed(image=images, labels=labels))
    cost = outcome.cost
    assert cost.float_top1 == pytest.approx(0.9)
    assert cost.quantized_top1 is not None
    assert cost.loss == pytest.approx(max(0.9 - cost.quantized_top1, 0))


@pytest.mark.parametrize(
    ("options", "dtype", "scales"),
    [
        ({}, np.int8, (6,)),
        ({"per_channel": False}, np.int8, ()),
        ({"activation": "uint8"}, np.int8, (6,)),
        ({"activation": "uint8", "weight": "uint8", "per_channel": False}, np.uint8, ()),
    ],
)
def test_types_and_scales_are_those_asked_for(
    tmp_path: Path, options: dict[str, Any], dtype: type, scales: tuple[int, ...]
) -> None:
    _, path = quantize(tmp_path, **options)
    integers, found = conv_weights(path)
    assert (integers.dtype, found.shape) == (dtype, scales)
    activation = np.dtype(options.get("activation", "int8"))
    assert constants(path)["image_zero_point"].dtype == activation


@pytest.mark.parametrize(("activation", "zero_point"), [("int8", -128), ("uint8", 0)])
def test_softmax_gets_the_scale_nnapi_prescribes(
    tmp_path: Path, activation: str, zero_point: int
) -> None:
    _, path = quantize(tmp_path, activation=activation)
    assert constants(path)["scores_scale"] == np.float32(1 / 256)
    assert constants(path)["scores_zero_point"] == zero_point


def test_excluded_nodes_stay_float(tmp_path: Path) -> None:
    _, path = quantize(tmp_path, exclude_nodes=("head", "softmax"))
    graph = onnx.load(path).graph
    dequantized = {n.output[0] for n in graph.node if n.op_type == "DequantizeLinear"}
    head = next(node for node in graph.node if node.name == "head")
    assert head.input[1] not in dequantized


def test_tensors_of_more_dimensions_than_nnapi_quantizes_stay_float(tmp_path: Path) -> None:
    model = networks.network()
    graph = model.graph
    shape = onnx.numpy_helper.from_array(np.array([-1, 2, 3, 8, 8]), "shape")
    graph.initializer.append(shape)
    del graph.node[3:]
    graph.node.extend(
        [
            helper.make_node("Reshape", ["relu6", "shape"], ["split"], name="split"),
            helper.make_node("Transpose", ["split"], ["scores"], name="turn", perm=[0, 2, 1, 3, 4]),
        ]
    )
    graph.output[0].CopyFrom(
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3, 2, 8, 8])
    )
    signature = networks.SIGNATURE.model_copy(
        update={
            "outputs": (TensorSpec(name="scores", dtype=DType.FLOAT32, shape=(-1, 3, 2, 8, 8)),)
        }
    )
    _, path = quantize(tmp_path, model=model, signature=signature)
    nodes = onnx.load(path).graph.node
    quantized = {n.input[0] for n in nodes if n.op_type == "QuantizeLinear"}
    assert "relu6" in quantized
    assert not quantized & {"split", "scores"}


def test_nodes_without_a_name_are_excluded_by_their_output(tmp_path: Path) -> None:
    quantize(tmp_path, exclude_nodes=("average",))


def test_unknown_names_are_named(tmp_path: Path) -> None:
    error = refusal(tmp_path, exclude_nodes=("head", "tail", "nose"))
    assert error.code == "quantize.bad_option"
    assert error.detail == "The model has no node 'nose', 'tail'."
    assert error.details == {"nodes": ["nose", "tail"]}


def test_excluding_what_is_merged_away_says_so(tmp_path: Path) -> None:
    error = refusal(tmp_path, exclude_nodes=("norm",))
    assert (error.code, error.details) == ("quantize.bad_option", {"nodes": ["norm"]})
    assert "folded into a neighbour" in error.detail


def test_quantized_model_is_refused(tmp_path: Path) -> None:
    _, path = quantize(tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    error = refusal(again, model=onnx.load(path))
    assert error.code == "quantize.already_quantized"


def test_dataset_that_does_not_fit_is_a_mismatch(tmp_path: Path) -> None:
    dataset = networks.packed(image=np.zeros((3, 3, 9, 9), np.float32))
    assert refusal(tmp_path, dataset=dataset).code == "dataset.mismatch"


def test_model_with_nothing_to_quantize_is_refused(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info("image", TensorProto.INT64, [2])
    result = helper.make_tensor_value_info("scores", TensorProto.INT64, [2])
    node = helper.make_node("Neg", ["image"], ["scores"])
    model = helper.make_model(helper.make_graph([node], "g", [info], [result]), ir_version=8)
    signature = ModelSignature.model_validate(
        {
            "inputs": [{"name": "image", "dtype": "int64", "shape": [2]}],
            "outputs": [{"name": "scores", "dtype": "int64", "shape": [2]}],
        }
    )
    dataset = networks.packed(image=np.zeros((3, 2), np.int64))
    error = refusal(tmp_path, model=model, dataset=dataset, signature=signature)
    assert error.code == "quantize.unsupported_model"


def test_old_opsets_are_lifted(tmp_path: Path) -> None:
    outcome, path = quantize(tmp_path, model=networks.network(opset=11))
    assert conv_weights(path)[1].shape == (6,)
    assert outcome.cost.agreement is not None


def test_progress_counts_every_sample_and_ends_whole(tmp_path: Path) -> None:
    events: list[StageEvent] = []
    run(write_job(tmp_path), tmp_path, events.append)
    done = [event.done for event in events]
    assert done == sorted(done)
    assert events[-1].done == events[-1].total
    assert list(dict.fromkeys(event.stage.value for event in events)) == [
        "prepare",
        "calibrate",
        "quantize",
        "measure",
    ]


def test_same_job_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    found = set()
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        write_job(folder, method="percentile")
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "workers.quantization.child", str(folder)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        found.add(json.loads((folder / "outcome.json").read_text())["model_sha256"])
    assert len(found) == 1
