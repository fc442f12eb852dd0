"""ONNX models with external data: what the archive may be, and what it may not."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.resources.models.formats import format_of
from service.resources.models.inspection import inspect_file
from tests.service.farm import Farm

SHAPE = np.array([2, 3], np.int64)
WEIGHT = np.arange(6, dtype=np.float32)


def external_model(
    location: str = "weights/w.bin", offset: int = 0, length: int | None = 24
) -> ModelProto:
    """Reshape(x, shape) + w, with w in a file."""
    weight = numpy_helper.from_array(WEIGHT.reshape(2, 3), "w")
    external_data_helper.set_external_data(weight, location, offset=offset, length=length)
    weight.ClearField("raw_data")
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"], name="r"),
        helper.make_node("Add", ["r", "w"], ["y"], name="sum"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [6])],
        [value("y", TensorProto.FLOAT, [2, 3])],
        [weight, numpy_helper.from_array(SHAPE, "shape")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


Entry = tuple[str | zipfile.ZipInfo, bytes]


def archive(*entries: Entry, compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as target:
        for name, content in entries:
            target.writestr(name, content)
    return out.getvalue()


def model_entry(model: ModelProto | None = None) -> Entry:
    return "net.onnx", (model or external_model()).SerializeToString()


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


def encrypted() -> bytes:
    """The flag alone: contents do not matter, they are never read."""
    content = bytearray(archive(model_entry(), ("weights/w.bin", WEIGHT.tobytes())))
    place = content.index(b"PK\x01\x02")
    content[place + 8] |= 1
    return bytes(content)


def overlapping() -> bytes:
    """Two entries of the directory that share one place: the old bomb."""
    content = bytearray(archive(model_entry(), ("a/w.bin", bytes(4096)), ("b/w.bin", bytes(4096))))
    first, second = (content.rindex(name) for name in (b"a/w.bin", b"b/w.bin"))
    content[second - 4 : second] = content[first - 4 : first]  # the header's offset
    whole = bytes(content)
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        cut = opened.infolist()[2].header_offset
        assert cut == opened.infolist()[1].header_offset
    # Without the second entry's own bytes the sizes add up to more than the file.
    start = whole.index(b"b/w.bin") - 30
    end = whole.index(b"PK\x01\x02")
    rest = bytearray(whole[:start] + whole[end:])
    tail = rest.rindex(b"PK\x05\x06")
    rest[tail + 16 : tail + 20] = start.to_bytes(4, "little")
    return bytes(rest)


WEIGHTS: Entry = ("weights/w.bin", WEIGHT.tobytes())

REFUSED: list[tuple[str, Callable[[], bytes], str, str]] = [
    ("missing file", lambda: archive(model_entry()), "model.external_data_missing", "not in the"),
    (
        "unused file",
        lambda: archive(model_entry(), WEIGHTS, ("notes.txt", b"hello")),
        "model.bad_archive",
        "no tensor of the model names 'notes.txt'",
    ),
    (
        "zip-slip",
        lambda: archive(model_entry(), WEIGHTS, ("../outside", b"x")),
        "model.bad_archive",
        "'../outside' is no plain relative name",
    ),
    (
        "absolute",
        lambda: archive(model_entry(), WEIGHTS, ("/etc/cron.d/x", b"x")),
        "model.bad_archive",
        "no plain relative name",
    ),
    (
        "backslash",
        lambda: archive(model_entry(), WEIGHTS, ("..\\x", b"x")),
        "model.bad_archive",
        "no plain relative name",
    ),
    (
        "link",
        lambda: archive(model_entry(), (link("weights/w.bin"), b"/etc/passwd")),
        "model.bad_archive",
        "a link or a special file",
    ),
    ("folder", lambda: archive(model_entry(), ("weights/", b"")), "model.bad_archive", "no plain"),
    (
        "compressed",
        lambda: archive(model_entry(), WEIGHTS, compression=zipfile.ZIP_DEFLATED),
        "model.bad_archive",
        "is compressed",
    ),
    ("encrypted", encrypted, "model.bad_archive", "is encrypted"),
    ("overlapping", overlapping, "model.bad_archive", "overlap"),
    (
        "file and folder",
        lambda: archive(model_entry(), ("weights", b"x"), WEIGHTS),
        "model.bad_archive",
        "a file and the folder of",
    ),
    (
        "too many",
        lambda: archive(model_entry(), *((f"{i}", b"") for i in range(10_000))),
        "model.bad_archive",
        "10001 entries",
    ),
    (
        "model not first",
        lambda: archive(WEIGHTS, model_entry()),
        "model.bad_archive",
        "first entry",
    ),
    (
        "damaged",
        lambda: archive(model_entry(), WEIGHTS)[:-30],
        "model.bad_archive",
        "damaged",
    ),
    (
        "data too short",
        lambda: archive(model_entry(external_model(offset=8)), WEIGHTS),
        "model.external_data_missing",
        "the file has 24",
    ),
    (
        "data of another size",
        lambda: archive(model_entry(external_model(length=20)), WEIGHTS),
        "model.external_data_missing",
        "needs 24 bytes",
    ),
    (
        "location outside",
        lambda: archive(model_entry(external_model("../w.bin")), WEIGHTS),
        "model.external_data_escapes",
        "outside",
    ),
]


@pytest.mark.parametrize(
    ("make", "code", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_bad_archives_are_refused(
    make: Callable[[], bytes], code: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "upload"
    path.write_bytes(make())
    with pytest.raises(NnfarmError, match=words) as raised:
        inspect_file(path)
    assert raised.value.code == code


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(archive(model_entry(), WEIGHTS, WEIGHTS))
    with pytest.raises(NnfarmError, match="twice") as raised:
        inspect_file(path)
    assert raised.value.code == "model.bad_archive"


def test_an_archive_is_an_onnx_model_and_inspected_as_one(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(archive(model_entry(), WEIGHTS))
    assert format_of(path) is ModelFormat.ONNX
    signature = inspect_file(path)
    assert [(spec.name, spec.shape) for spec in signature.inputs] == [("x", (6,))]


def test_large_external_tensors_pass_without_being_read(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 256] x) => (float[1, 512] y) { y = MatMul(x, w) }"""
    )
    weight = numpy_helper.from_array(np.ones((256, 512), np.float32), "w")
    external_data_helper.set_external_data(weight, "w.bin", length=256 * 512 * 4)
    weight.ClearField("raw_data")
    model.graph.initializer.append(weight)
    path = tmp_path / "upload"
    path.write_bytes(archive(model_entry(model), ("w.bin", bytes(256 * 512 * 4))))
    assert inspect_file(path).outputs[0].shape == (1, 512)


def test_upload_of_an_archive(farm: Farm) -> None:
    content = archive(model_entry(), WEIGHTS)
    answers: list[httpx.Response] = [
        farm.client.post("/v1/models", files={"file": ("net.zip", content)}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 200]
    first, again = (answer.json() for answer in answers)
    assert first["format"] == "onnx"
    assert first["id"] == again["id"]
