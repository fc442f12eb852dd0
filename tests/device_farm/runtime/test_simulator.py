"""The player over the farm's own simulator: a small network, every kind of constant."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from device_farm.simulator import build as simulator

Json = dict[str, Any]

FLOAT, INT32 = 3, 4
IMAGE, CLASSES = (1, 6, 6, 3), 5
RELU6, NO_ACTIVATION = 3, 0


class Encoder:
    """Writes an encoded model by hand, large constants into a weights file."""

    def __init__(self) -> None:
        self.weights = b""
        self.operands: list[Json] = []
        self.operations: list[Json] = []

    def tensor(self, *dims: int) -> int:
        return self._add({"type": FLOAT, "dims": list(dims)})

    def constant(self, value: np.ndarray[Any, Any]) -> int:
        data = value.tobytes()
        entry: Json = {"type": FLOAT, "dims": list(value.shape)}
        if len(data) <= 128:
            return self._add({**entry, "data": base64.b64encode(data).decode()})
        self.weights += bytes(-len(self.weights) % 64)
        entry |= {"offset": len(self.weights), "size": len(data)}
        self.weights += data
        return self._add(entry)

    def scalar(self, value: int) -> int:
        data = base64.b64encode(np.int32(value).tobytes()).decode()
        return self._add({"type": 1, "dims": [], "data": data})

    def shape(self, *values: int) -> int:
        data = base64.b64encode(np.array(values, np.int32).tobytes()).decode()
        return self._add({"type": INT32, "dims": [len(values)], "data": data})

    def operation(self, code: int, name: str, inputs: list[int], output: int) -> None:
        self.operations.append({"code": code, "name": name, "inputs": inputs, "outputs": [output]})

    def document(self, symbol: str, inputs: list[int], outputs: list[int]) -> Json:
        return {
            "format": "nnfarm.nnapi",
            "version": 1,
            "symbol": symbol,
            "level": 1,
            "relaxed": False,
            "weights": {"file": "weights.bin", "size": len(self.weights), "sha256": "0" * 64},
            "operands": self.operands,
            "operations": self.operations,
            "inputs": inputs,
            "outputs": outputs,
        }

    def _add(self, entry: Json) -> int:
        self.operands.append(entry)
        return len(self.operands) - 1


@pytest.fixture(scope="module")
def parameters() -> dict[str, np.ndarray[Any, Any]]:
    source = np.random.default_rng(3)
    shapes = {"filter": (4, 3, 3, 3), "bias": (4,), "matrix": (CLASSES, 64), "offset": (CLASSES,)}
    return {name: source.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def encode(parameters: dict[str, np.ndarray[Any, Any]]) -> tuple[Json, bytes]:
    """CONV_2D (valid, stride 1) with bias and RELU6, RESHAPE, FULLY_CONNECTED."""
    encoder = Encoder()
    image, maps = encoder.tensor(*IMAGE), encoder.tensor(1, 4, 4, 4)
    flat, scores = encoder.tensor(1, 64), encoder.tensor(1, CLASSES)
    weights = [encoder.constant(parameters["filter"]), encoder.constant(parameters["bias"])]
    # Implicit padding: scheme VALID, strides, activation.
    settings = [encoder.scalar(value) for value in (2, 1, 1, RELU6)]
    encoder.operation(3, "CONV_2D", [image, *weights, *settings], maps)
    encoder.operation(22, "RESHAPE", [maps, encoder.shape(1, 64)], flat)
    dense = [encoder.constant(parameters["matrix"]), encoder.constant(parameters["offset"])]
    none = encoder.scalar(NO_ACTIVATION)
    encoder.operation(9, "FULLY_CONNECTED", [flat, *dense, none], scores)
    return encoder.document("nnfarm_nnapi_0", [image], [scores]), encoder.weights


def reference(parameters: dict[str, np.ndarray[Any, Any]], image: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(0, 1))
    maps = np.einsum("hwcij,oijc->hwo", windows, parameters["filter"]) + parameters["bias"]
    return parameters["matrix"] @ np.clip(maps, 0, 6).reshape(-1) + parameters["offset"]


@pytest.fixture(scope="module")
def simulator_library() -> Path:
    return simulator.build_simulator("linux-x86_64")


@pytest.fixture
def network(make_package: Any, parameters: dict[str, np.ndarray[Any, Any]]) -> Path:
    document, weights = encode(parameters)
    folder: Path = make_package(document, weights, (IMAGE, (1, CLASSES))).folder
    return folder


SETTINGS = (
    *("--preference", "sustained-speed", "--priority", "high", "--compute", "async"),
    *("--compile-timeout-ms", "60000", "--execute-timeout-ms", "60000"),
)


@pytest.mark.parametrize("settings", [(), SETTINGS], ids=["plain", "settings"])
@pytest.mark.parametrize("level", [1, 2, 3, 4, 5, 8])
def test_a_network_is_right_at_every_level(
    run: Any,
    network: Path,
    simulator_library: Path,
    parameters: dict[str, np.ndarray[Any, Any]],
    tmp_path: Path,
    level: int,
    settings: tuple[str, ...],
) -> None:
    profile = tmp_path / "profile"
    profile.write_text(f"feature_level {level}\ndevice sim-npu accelerator 1.0 {level}\n")
    images = np.random.default_rng(level).normal(size=(4, *IMAGE)).astype(np.float32)
    save_file({"x": images}, tmp_path / "in.safetensors")
    result = run(
        *("--package", network, "--nnapi-library", simulator_library, "--mode", "nnapi"),
        *("--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors"),
        *settings,
        *("--cache-dir", tmp_path) if settings else (),
        NNFARM_SIM_PROFILE=str(profile),
    )
    assert result.exit_code == 0, json.dumps(result.events) + result.log
    assert result.one("nnapi")["feature_level"] == level
    assert result.one("subgraph")["devices"] == (["sim-npu"] if level >= 3 else [])
    scores = load_file(tmp_path / "out.safetensors")["sum"]
    for image, score in zip(images, scores, strict=True):
        expected = reference(parameters, image[0])
        np.testing.assert_allclose(score[0], expected, rtol=1e-4, atol=1e-4)


ROW = 16


@pytest.fixture
def lookup(make_package: Any) -> Any:
    """Packages of one row of a table of weights, plus an input."""

    def make(rows: int) -> Path:
        encoder = Encoder()
        x, row, y = encoder.tensor(1, ROW), encoder.tensor(1, ROW), encoder.tensor(1, ROW)
        table = encoder.constant(np.ones((rows, ROW), np.float32))
        wanted = encoder.shape(rows - 1)
        encoder.operation(51, "GATHER", [table, encoder.scalar(0), wanted], row)
        encoder.operation(0, "ADD", [x, row, encoder.scalar(NO_ACTIVATION)], y)
        document = encoder.document("nnfarm_nnapi_0", [x], [y]) | {"level": 3}
        folder: Path = make_package(document, encoder.weights, ((1, ROW), (1, ROW))).folder
        return folder

    return make


def test_weights_take_their_size_of_memory_once(
    run: Any, lookup: Any, simulator_library: Path, tmp_path: Path
) -> None:
    peaks = []
    for rows in (64, 1 << 20):
        package = lookup(rows)
        result = run(
            *("--package", package, "--nnapi-library", simulator_library, "--mode", "nnapi")
        )
        assert result.exit_code == 0, json.dumps(result.events) + result.log
        peaks.append(result.one("memory")["peak_rss_bytes"])
        package.rename(tmp_path / f"package-{rows}")
    weights_bytes = (1 << 20) * ROW * 4
    assert peaks[1] - peaks[0] <= 1.1 * weights_bytes


FIBONACCI = "com.example.fibonacci"
NPU = f"device npu accelerator 1.0 4\nextension npu {FIBONACCI}\n"


@pytest.fixture
def sequence(make_package: Any) -> Path:
    """A package of one vendor operation: the first n numbers of Fibonacci's sequence."""
    encoder = Encoder()
    n, numbers = encoder.tensor(1), encoder.tensor(8)
    encoder.operation(0, "EXAMPLE_FIBONACCI", [n], numbers)
    encoder.operations[0]["extension"] = FIBONACCI
    document = encoder.document("nnfarm_nnapi_0", [n], [numbers])
    del document["weights"]
    folder: Path = make_package(document, b"", ((1,), (8,))).folder
    return folder


def test_a_vendor_extension_runs(
    run: Any, sequence: Path, simulator_library: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    profile.write_text(f"feature_level 4\n{NPU}")
    save_file({"x": np.array([[8]], np.float32)}, tmp_path / "in.safetensors")
    result = run(
        *("--package", sequence, "--nnapi-library", simulator_library, "--mode", "nnapi"),
        *("--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors"),
        NNFARM_SIM_PROFILE=str(profile),
    )
    assert result.exit_code == 0, json.dumps(result.events) + result.log
    assert result.one("subgraph")["devices"] == ["npu"]
    (numbers,) = load_file(tmp_path / "out.safetensors")["sum"]
    assert numbers.tolist() == [1, 1, 2, 3, 5, 8, 13, 21]


@pytest.mark.parametrize(
    ("statements", "options", "detail"),
    [
        ("feature_level 4\ndevice npu accelerator 1.0 4\n", (), f"no device has {FIBONACCI}"),
        (f"feature_level 4\n{NPU}", ("--device", "not:npu"), f"no device has {FIBONACCI}"),
        (f"feature_level 2\n{NPU}", (), "needs feature level 3; this device has 2"),
        (f"feature_level 4\n{NPU}forbid_extensions\n", (), "nnapi_extensions_app_allowlist"),
    ],
)
def test_an_extension_that_cannot_be_used_is_told_with_its_reason(
    run: Any,
    sequence: Path,
    simulator_library: Path,
    tmp_path: Path,
    statements: str,
    options: tuple[str, ...],
    detail: str,
) -> None:
    profile = tmp_path / "profile"
    profile.write_text(statements)
    result = run(
        *("--package", sequence, "--nnapi-library", simulator_library, "--mode", "nnapi"),
        *options,
        NNFARM_SIM_PROFILE=str(profile),
    )
    assert result.exit_code == 6
    assert result.one("error")["code"] == "nnapi.extension_unsupported"
    assert detail in result.one("error")["detail"]
