"""The client makes one upload of an ONNX model and the files its tensors name."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from service.client import Client
from service.contracts.errors import NnfarmError
from service.resources.models.inspection import inspect_file

WEIGHTS = np.arange(4, dtype=np.float32)


def write_model(path: Path, *locations: str) -> None:
    """x + w0 + w1 + ..., one file a weight."""
    value = helper.make_tensor_value_info
    names = ["x", *(f"s{i}" for i in range(len(locations)))]
    nodes, weights = [], []
    for index, location in enumerate(locations):
        weight = numpy_helper.from_array(WEIGHTS + index, f"w{index}")
        external_data_helper.set_external_data(weight, location)
        weight.ClearField("raw_data")
        weights.append(weight)
        nodes.append(helper.make_node("Add", [names[index], f"w{index}"], [names[index + 1]]))
    border = [value(name, TensorProto.FLOAT, [4]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "g", border[:1], border[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def test_the_archive_has_the_model_first_and_only_what_it_names(
    client: Client, farm: Any, tmp_path: Path
) -> None:
    (tmp_path / "weights").mkdir()
    for index, name in enumerate(("z.bin", "weights/a.bin")):
        (tmp_path / name).write_bytes((WEIGHTS + index).tobytes())
    (tmp_path / "private.txt").write_text("not for upload")
    write_model(tmp_path / "net.onnx", "z.bin", "weights/a.bin")

    model = client.upload_model(tmp_path / "net.onnx")

    uploaded = farm.uploads[model.sha256]
    with zipfile.ZipFile(io.BytesIO(uploaded)) as archive:
        assert archive.namelist() == ["model.onnx", "weights/a.bin", "z.bin"]
    assert farm.uploaded_names == ["net"]
    (tmp_path / "upload").write_bytes(uploaded)
    assert inspect_file(tmp_path / "upload").inputs[0].shape == (4,), "the service takes it"


def test_the_same_contents_are_the_same_bytes(client: Client, tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "w.bin").write_bytes(WEIGHTS.tobytes())
        write_model(folder / f"{name}.onnx", "w.bin")
        os.utime(folder / "w.bin", (1e9, 1e9 + len(hashes)))
        hashes.append(client.upload_model(folder / f"{name}.onnx").sha256)
    assert hashes[0] == hashes[1]


def test_a_missing_data_file_is_named_before_anything_is_sent(
    client: Client, farm: Any, tmp_path: Path
) -> None:
    write_model(tmp_path / "net.onnx", "gone.bin")
    with pytest.raises(NnfarmError, match=r"'gone\.bin', which is not beside") as raised:
        client.upload_model(tmp_path / "net.onnx")
    assert raised.value.code == "model.external_data_missing"
    assert farm.calls == []


def test_a_model_that_reaches_outside_its_folder_sends_nothing(
    client: Client, farm: Any, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    write_model(tmp_path / "inner" / "net.onnx", "../secret.bin")
    with pytest.raises(NnfarmError, match="outside the model") as raised:
        client.upload_model(tmp_path / "inner" / "net.onnx")
    assert raised.value.code == "model.external_data_escapes"
    assert farm.calls == []
