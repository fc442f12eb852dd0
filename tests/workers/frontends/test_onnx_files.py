"""ONNX models with external data, as a job has them: one archive that every reader opens."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from service.client.packing import uploadable
from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, weights
from workers.frontends.onnx import import_onnx
from workers.frontends.onnx_files import onnx_path
from workers.pipeline.stages.runtimes import run_original


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    """What the client sends, at a job's name for it."""
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="fc")
    model = make_model([node], {"x": [1, 8]}, ["y"], {"w": weights(8, 4), "b": weights(4)})
    folder = tmp_path / "user"
    folder.mkdir()
    onnx.save(
        model,
        folder / "net.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=False,
        size_threshold=0,
    )
    path = tmp_path / "job" / "model"
    path.parent.mkdir()
    with uploadable(folder / "net.onnx") as file:
        shutil.copyfile(file, path)
    shutil.rmtree(folder)
    return path


def test_importer_and_reference_read_the_same_archive(upload: Path) -> None:
    imported = import_onnx(upload)
    x = np.random.default_rng(5).normal(size=(1, 8)).astype(np.float32)
    (found,) = on_host(imported.graph)(x)
    wanted = run_original(upload, ModelFormat.ONNX, imported.signature, {"x": x[None]})
    np.testing.assert_allclose(found, wanted["y"][0], rtol=1e-5, atol=1e-6)


def test_an_archive_is_unpacked_once_beside_the_upload(upload: Path) -> None:
    first = onnx_path(upload)
    written = first.stat().st_mtime_ns
    assert onnx_path(upload) == first
    assert first.stat().st_mtime_ns == written
    assert sorted(path.name for path in upload.parent.iterdir()) == ["model", "model.files"]


def test_a_plain_model_is_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    onnx.save(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"]), path)
    assert onnx_path(path) == path


def test_the_worker_does_not_rely_on_the_services_checks(tmp_path: Path) -> None:
    path = tmp_path / "job" / "model"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m.onnx", b"")
        archive.writestr("../outside", b"x")
    with pytest.raises(NnfarmError, match="no plain relative name") as raised:
        onnx_path(path)
    assert raised.value.code == "model.bad_archive"
    assert not (tmp_path / "outside").exists()
