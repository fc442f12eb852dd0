"""PyTorch's exported programs: names kept, PyTorch's numbers, and nothing of the file executed."""

from __future__ import annotations

import io
import json
import pickle
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers torch.ops.quantized_decomposed
from torch import nn

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from workers.frontends.pytorch.importer import import_pytorch
from workers.graph.graph import constant_value, dtype_of
from workers.graph.quantization import DEQUANTIZE, QUANTIZE
from workers.pipeline.stages.ingest import fold
from workers.pipeline.stages.runtimes import run_original


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(inplace=True)
        )
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.gate = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8, 5)
        self.register_buffer("gain", torch.full((1, 8, 1, 1), 2.0))

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.stem(image) * self.gain
        x = torch.cat([x, nn.functional.relu6(self.deep(x))], 1)[:, :8]
        gate = nn.functional.adaptive_avg_pool2d(x, 1)
        x = x * torch.sigmoid(self.gate(gate))
        x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
        return self.head(x.mean((2, 3))), gate


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.norm, self.qkv = nn.LayerNorm(16), nn.Linear(16, 48)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        x = x + nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
        causal = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + causal.transpose(1, 2).flatten(2)


class Quantized(nn.Module):
    """What PyTorch's quantizer leaves: integers as weights, quantize and dequantize around."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (8, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(8) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))
        self.register_buffer("head", torch.randint(-127, 128, (5, 8), dtype=torch.int8))
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        q = torch.ops.quantized_decomposed

        def requantized(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
            stored = q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
            return q.dequantize_per_tensor(stored, scale, zero, -128, 127, torch.int8)

        weight = q.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        x = requantized(image, 0.05, 3)
        x = nn.functional.conv2d(x, weight, self.bias, padding=1).relu()
        x = requantized(x, 0.05, -128)
        x = requantized(nn.functional.adaptive_avg_pool2d(x, 1), 0.04, -128).flatten(1)
        head = q.dequantize_per_tensor(self.head, 0.01, 0, -127, 127, torch.int8)
        return requantized(nn.functional.linear(x, head), 0.1, 0)


class QuantizedAsItRuns(nn.Module):
    """What PyTorch's quantizer leaves where the scale of the data is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (8, 12), dtype=torch.int8))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        q, kind = torch.ops.quantized_decomposed, torch.int8
        scale, zero = q.choose_qparams.tensor(rows, -128, 127, 1e-6, kind)
        stored = q.quantize_per_tensor.tensor(rows, scale, zero, -128, 127, kind)
        rows = q.dequantize_per_tensor.tensor(stored, scale, zero, -128, 127, kind)
        weight = q.dequantize_per_tensor(self.weight, 0.01, 0, -127, 127, kind)
        return nn.functional.linear(rows, weight)


class Masked(nn.Module):
    """Scores where a mask of 64-bit integers and a new truth value allow them."""

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        allowed = mask.to(torch.bool) & scores.new_ones((), dtype=torch.bool)
        return torch.where(allowed, scores, -1.0)


def exported(model: nn.Module, *inputs: torch.Tensor, **options: Any) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(model.eval(), inputs, **options), content)
    return content.getvalue()


@pytest.fixture(scope="module")
def classifier() -> bytes:
    torch.manual_seed(0)
    return exported(Classifier(), torch.randn(1, 3, 16, 16))


def saved(content: bytes, folder: Path) -> Path:
    path = folder / "model.pt2"
    path.write_bytes(content)
    return path


def check_numbers(path: Path, inputs: dict[str, np.ndarray]) -> None:
    imported = import_pytorch(path)
    want = run_original(path, ModelFormat.PYTORCH, imported.signature, inputs)
    run = on_host(fold(imported.graph))
    for index in range(len(next(iter(inputs.values())))):
        got = run(*(array[index] for array in inputs.values()))
        for spec, array in zip(imported.signature.outputs, got, strict=True):
            assert array.shape == spec.shape
            np.testing.assert_allclose(array, want[spec.name][index], rtol=1e-4, atol=1e-5)


def test_convolutional_network_gives_the_numbers_of_pytorch(
    classifier: bytes, tmp_path: Path
) -> None:
    images = np.random.default_rng(1).standard_normal((4, 1, 3, 16, 16)).astype(np.float32)
    check_numbers(saved(classifier, tmp_path), {"image": images})


def test_transformer_gives_the_numbers_of_pytorch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = saved(exported(Encoder(), torch.zeros(1, 7, dtype=torch.int64)), tmp_path)
    tokens = np.random.default_rng(1).integers(0, 20, (4, 1, 7))
    check_numbers(path, {"tokens": tokens})


def test_made_truth_values_choose_like_in_pytorch(tmp_path: Path) -> None:
    shapes = torch.randn(2, 5), torch.zeros(2, 5, dtype=torch.int64)
    path = saved(exported(Masked(), *shapes), tmp_path)
    generator = np.random.default_rng(1)
    scores = generator.standard_normal((4, 2, 5)).astype(np.float32)
    check_numbers(path, {"scores": scores, "mask": generator.integers(0, 2, (4, 2, 5))})


class Recurrent(nn.Module):
    """Two layers in both directions, read at their last step and by their last states."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layers = kind(6, 4, 2, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        outputs, last = self.layers(x)
        return outputs[:, -1], last[0] if isinstance(last, tuple) else last


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_give_outputs_and_last_states(
    kind: type[nn.RNNBase], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    path = saved(exported(Recurrent(kind), torch.randn(1, 5, 6)), tmp_path)
    x = np.random.default_rng(1).standard_normal((2, 1, 5, 6)).astype(np.float32)
    check_numbers(path, {"x": x})


class Pooled(nn.Module):
    """Windows of unequal sizes, resampling with a rest, and a grid."""

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        functional = nn.functional
        grid = torch.linspace(-1, 1, 40).view(1, 4, 5, 2)
        return (
            functional.adaptive_max_pool2d(image, 3),
            functional.adaptive_max_pool2d(image, 5),
            functional.adaptive_avg_pool2d(image, (5, 4)),
            functional.adaptive_avg_pool1d(image.flatten(2), 7),
            functional.adaptive_avg_pool3d(image, 1),
            functional.interpolate(image, size=(17, 9), mode="nearest"),
            functional.interpolate(image, scale_factor=1.3, mode="bilinear"),
            functional.interpolate(image.flatten(2), scale_factor=1.5, mode="linear"),
            functional.grid_sample(image, grid, align_corners=False),
        )


class Reduced(nn.Module):
    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            image.amax((2, 3)),
            image.min(1)[0],
            image.prod(1),
            image.std((2, 3)),
            image.var(1, unbiased=False),
            torch.cdist(image[0], image[0]),
            torch.einsum("bchw,bkhw->bck", image, image),
            nn.functional.instance_norm(image),
        )


class Indexed(nn.Module):
    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, columns = torch.tensor([0, -1]), torch.tensor([3, 4])
        return (
            image[:, -1],
            image[:, [0, -2]],
            image[torch.arange(1), image[:, :, 0, 0].argmax(1)],
            image[:, (columns - 5).clamp(0, 2)],
            image[:, :, rows, columns],
            image[:, rows, :, columns],
            image[:, :, rows[:, None], columns],
            image.unfold(2, 4, 3),
            nn.functional.unfold(image, 3, padding=1, stride=2),
        )


@pytest.mark.parametrize(
    "model", [Pooled(), Reduced(), Indexed()], ids=["windows", "reductions", "indices"]
)
def test_functions_give_the_numbers_of_pytorch(model: nn.Module, tmp_path: Path) -> None:
    path = saved(exported(model, torch.randn(1, 6, 12, 12)), tmp_path)
    images = np.random.default_rng(1).standard_normal((2, 1, 6, 12, 12)).astype(np.float32)
    check_numbers(path, {"image": images})


def test_half_precision_stays_what_it_is(tmp_path: Path) -> None:
    torch.manual_seed(0)
    image = torch.randn(1, 3, 16, 16).half()
    path = saved(exported(Classifier().half(), image), tmp_path)
    imported = import_pytorch(path)
    want = run_original(
        path, ModelFormat.PYTORCH, imported.signature, {"image": image[None].numpy()}
    )
    got = on_host(imported.graph)(image.numpy())
    for spec, array in zip(imported.signature.outputs, got, strict=True):
        assert array.dtype == np.float16
        np.testing.assert_allclose(array, want[spec.name][0], atol=2e-2)


def test_quantized_program_is_in_units(tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = saved(exported(Quantized(), torch.randn(1, 3, 8, 8)), tmp_path)
    imported = import_pytorch(path)
    images = np.random.default_rng(1).standard_normal((4, 1, 3, 8, 8)).astype(np.float32)
    want = run_original(path, ModelFormat.PYTORCH, imported.signature, {"image": images})
    (name,) = want
    run = on_host(imported.graph)
    for index in range(4):
        np.testing.assert_allclose(run(images[index])[0], want[name][index], atol=0.101)
    calls = [b.call for b in imported.graph.bindings if b.op_name == DEQUANTIZE]
    stored = [c.args[0] for c in calls if c is not None]
    constants = [c for c in stored if constant_value(c) is not None]
    assert [dtype_of(c) for c in constants] == ["int8", "int8"]
    assert sum(b.op_name == QUANTIZE for b in imported.graph.bindings) == 4


@pytest.mark.parametrize("batch", [None, 3])
def test_quantized_program_with_an_open_batch(batch: int | None, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shapes = {"image": {0: torch.export.Dim("batch")}}
    content = exported(Quantized(), torch.randn(2, 3, 8, 8), dynamic_shapes=shapes)
    path = saved(content, tmp_path)
    shape = (batch or 1, 3, 8, 8)
    imported = import_pytorch(path, {"image": shape} if batch else None)
    images = np.random.default_rng(1).standard_normal((1, *shape)).astype(np.float32)
    want = run_original(path, ModelFormat.PYTORCH, imported.signature, {"image": images})
    (got,) = on_host(imported.graph)(images[0])
    np.testing.assert_allclose(got, next(iter(want.values()))[0], atol=0.101)
    assert sum(b.op_name == QUANTIZE for b in imported.graph.bindings) == 4


def test_quantization_by_the_data_is_computed_in_real_numbers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = saved(exported(QuantizedAsItRuns(), torch.randn(5, 12)), tmp_path)
    imported = import_pytorch(path)
    rows = np.random.default_rng(1).standard_normal((4, 5, 12)).astype(np.float32)
    want = run_original(path, ModelFormat.PYTORCH, imported.signature, {"rows": rows})
    run = on_host(imported.graph)
    for index in range(4):
        (got,) = run(rows[index])
        np.testing.assert_allclose(got, next(iter(want.values()))[index], rtol=1e-5, atol=1e-5)


def test_names_are_the_programs_own(classifier: bytes, tmp_path: Path) -> None:
    imported = import_pytorch(saved(classifier, tmp_path))
    graph, signature = imported.graph, imported.signature
    assert [(i.name, i.dtype, i.shape) for i in signature.inputs] == [
        ("image", "float32", (1, 3, 16, 16))
    ]
    assert [o.shape for o in signature.outputs] == [(1, 5), (1, 8, 1, 1)]
    names = {graph.nodes[i].name for b in graph.bindings for i in graph.origin_of(b.var)}
    # In-place operations keep the name they had in the user's model.
    assert {"conv2d", "batch_norm", "hardswish_", "linear"} <= names
    assert {n.op_type for n in graph.nodes} >= {"conv2d", "batch_norm", "hardswish_", "cat"}
    assert all(graph.origin_of(b.var) for b in graph.bindings if b.call is not None), (
        "a binding without origin"
    )


class Bomb:
    """Unpickled, it would write a file."""

    def __init__(self, witness: Path) -> None:
        self._witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._witness,)


def changed(content: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The archive with some members replaced; None leaves one out."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(result, "w") as target:
        for name in source.namelist():
            data = change(name, source.read(name))
            if data is not None:
                target.writestr(name, data)
    return result.getvalue()


def program_with(content: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    def change(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        program = json.loads(data)
        edit(program)
        return json.dumps(program).encode()

    return changed(content, change)


def test_pickled_sample_inputs_are_left_alone(classifier: bytes, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(witness))
    content = changed(classifier, lambda n, data: bomb if "sample_inputs" in n else data)
    import_pytorch(saved(content, tmp_path))
    assert not witness.exists()


def test_pickled_weights_are_refused(classifier: bytes, tmp_path: Path) -> None:
    witness = tmp_path / "executed"

    def change(name: str, data: bytes) -> bytes:
        if name.endswith("weights_config.json"):
            return data.replace(b'"use_pickle": false', b'"use_pickle": true', 1)
        return pickle.dumps(Bomb(witness)) if name.endswith("weight_0") else data

    with pytest.raises(NnfarmError, match="pickled") as caught:
        import_pytorch(saved(changed(classifier, change), tmp_path))
    assert caught.value.code == "model.unsafe"
    assert not witness.exists()


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(program: dict[str, Any]) -> None:
        *way, last = path.split("/")
        place: Any = program
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[int(last) if isinstance(place, list) else last] = value

    return edit


NODE = "graph_module/graph/nodes/0"
CALL = "graph_module/module_call_graph/0/signature"
ENUM = '[1, {"type": "builtins.dict", "context": "[{\\"__enum__\\": true}]", "children_spec": []}]'


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (_set(f"{NODE}/target", "torch.hub.load"), "compile.unsupported_operation"),
        (_set(f"{NODE}/target", "_operator.attrgetter"), "compile.unsupported_operation"),
        (_set(f"{NODE}/name", "x; import os"), "model.unsafe"),
        (_set(f"{NODE}/outputs/0/as_tensor/name", "a b"), "model.unsafe"),
        (_set(f"{NODE}/inputs/0/name", "x=open('f')"), "model.unsafe"),
        (_set(f"{NODE}/inputs/0/arg", {"as_custom_obj": {"name": "o"}}), "model.unsafe"),
        (
            _set(f"{NODE}/inputs/0/arg", {"as_sym_int": {"as_expr": {"expr_str": "exit(1)"}}}),
            "compile.unsupported_model",
        ),
        (_set(f"{CALL}/in_spec", ENUM), "model.unsafe"),
    ],
    ids=["target", "operator", "name", "output", "keyword", "object", "expression", "enum"],
)
def test_graph_that_would_execute_something_is_refused(
    classifier: bytes, edit: Callable[[dict[str, Any]], None], code: str, tmp_path: Path
) -> None:
    with pytest.raises(NnfarmError) as caught:
        import_pytorch(saved(program_with(classifier, edit), tmp_path))
    assert caught.value.code == code


def test_guards_of_the_file_are_not_evaluated(classifier: bytes, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    guard = f"__import__('pathlib').Path({str(witness)!r}).touch()"
    path = saved(program_with(classifier, _set("guards_code", [guard])), tmp_path)
    check_numbers(path, {"image": np.zeros((1, 1, 3, 16, 16), np.float32)})
    assert not witness.exists()


class Resized(nn.Module):
    """Sizes of the result are computed from the input's."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2, 1)

    def forward(self, image: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        x = self.conv(image)
        batch, channels, height, width = x.shape
        rows = x.view(batch, channels, height * width).transpose(1, 2) * height
        return rows + (torch.arange(steps.shape[1])[None] * steps).sum(1)[:, None, None]


@pytest.fixture(scope="module")
def resized() -> bytes:
    torch.manual_seed(0)
    batch, sizes = torch.export.Dim("batch"), {2: torch.export.Dim("h", min=8, max=64)}
    shapes = {"image": {0: batch, **sizes}, "steps": {0: batch, 1: torch.export.Dim.AUTO}}
    return exported(Resized(), torch.randn(2, 3, 16, 16), torch.randn(2, 5), dynamic_shapes=shapes)


@pytest.mark.parametrize("batch", [1, 2])
def test_open_dimensions_are_those_given(resized: bytes, batch: int, tmp_path: Path) -> None:
    path = saved(resized, tmp_path)
    shapes = {"image": (batch, 3, 22, 16), "steps": (batch, 7)}
    imported = import_pytorch(path, shapes)
    assert [spec.shape for spec in imported.signature.inputs] == [*shapes.values()]
    generator = np.random.default_rng(1)
    inputs = {n: generator.standard_normal(shape, np.float32) for n, shape in shapes.items()}
    stacked = {name: array[None] for name, array in inputs.items()}
    want = run_original(path, ModelFormat.PYTORCH, imported.signature, stacked)
    (got,) = on_host(imported.graph)(*inputs.values())
    np.testing.assert_allclose(got, next(iter(want.values()))[0], rtol=1e-4, atol=1e-5)


def test_an_open_batch_is_one(tmp_path: Path) -> None:
    shapes = {"image": {0: torch.export.Dim("batch")}}
    content = exported(Classifier(), torch.randn(2, 3, 16, 16), dynamic_shapes=shapes)
    signature = import_pytorch(saved(content, tmp_path)).signature
    assert [spec.shape for spec in signature.inputs] == [(1, 3, 16, 16)]
    assert [spec.shape for spec in signature.outputs] == [(1, 5), (1, 8, 1, 1)]


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({}, r"open.*'image' \[1, 3, s\d+ \(8 to 64\), 16\]; 'steps' \[1, s\d+"),
        ({"image": (1, 3, 4, 16)}, r"does not fit input 'image'"),
        ({"image": (1, 3, 16, 16), "steps": (2, 5)}, r"does not fit input 'steps'"),
        ({"image": (1, 3, 16)}, r"does not fit input 'image'"),
        ({"picture": (1, 3, 16, 16)}, "no input 'picture'; it has image, steps"),
    ],
    ids=["open", "bounds", "other batch", "rank", "name"],
)
def test_shapes_that_do_not_fit_are_refused(
    resized: bytes, shapes: dict[str, tuple[int, ...]], words: str, tmp_path: Path
) -> None:
    with pytest.raises(NnfarmError, match=words) as caught:
        import_pytorch(saved(resized, tmp_path), shapes)
    assert caught.value.code == "compile.bad_option"


def test_expressions_of_sizes_are_not_evaluated(resized: bytes, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    call = f"Add(__import__('pathlib').Path({str(witness)!r}).touch(), Integer(1))"
    edit = _set("graph_module/graph/tensor_values/conv2d/sizes/0", {"as_expr": {"expr_str": call}})
    shapes = {"image": (1, 3, 16, 16), "steps": (1, 5)}
    with pytest.raises(NnfarmError, match="cannot be read") as caught:
        import_pytorch(saved(program_with(resized, edit), tmp_path), shapes)
    assert caught.value.code == "compile.unsupported_model"
    assert not witness.exists()


@pytest.mark.parametrize("cut", [0, 100, 5000])
def test_damaged_archives_are_unreadable(classifier: bytes, cut: int, tmp_path: Path) -> None:
    with pytest.raises(NnfarmError) as caught:
        import_pytorch(saved(classifier[:cut], tmp_path))
    assert caught.value.code == "model.unreadable"


def test_other_shapes_than_the_programs_are_refused(classifier: bytes, tmp_path: Path) -> None:
    with pytest.raises(NnfarmError) as caught:
        import_pytorch(saved(classifier, tmp_path), {"image": (2, 3, 16, 16)})
    assert caught.value.code == "compile.bad_option"


def test_a_worker_without_pytorch_says_how_to_get_it(
    classifier: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(classifier, tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)  # what an import of a missing module meets
    with pytest.raises(NnfarmError, match=r"pip install 'nnfarm\[torch\]'"):
        import_pytorch(path)
