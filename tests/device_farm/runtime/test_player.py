"""The player as a TVM module: what it takes, what it refuses, what it hands on."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi

SYMBOL = "nnfarm_nnapi_0"


def test_the_bytes_come_back_and_load_again(player: Any, encoded: Any) -> None:
    module = player(encoded)
    assert module.kind == "nnfarm.nnapi"
    saved = module.inspect_source()
    assert json.loads(saved) == encoded
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.nnfarm.nnapi")
    assert load(saved.encode()).inspect_source() == saved
    assert module.implements_function(SYMBOL)
    assert not module.implements_function("another")


def test_unknown_fields_are_ignored(player: Any, encoded: Any) -> None:
    encoded["comment"] = "x"
    encoded["operands"][0]["comment"] = "x"
    assert player(encoded).implements_function(SYMBOL)


def test_without_nnapi_the_call_says_so(player: Any, encoded: Any) -> None:
    tvm_ffi.get_global_func("nnfarm.nnapi.set_library")("absent.so")
    x, out = tvm_ffi.from_dlpack(np.zeros((4, 8), np.float32)), np.zeros((4, 8), np.float32)
    with pytest.raises(Exception, match=r"nnapi\.missing: absent\.so.*\[nnfarm_nnapi_0\]"):
        player(encoded).get_function(SYMBOL)(x, tvm_ffi.from_dlpack(out))


@pytest.fixture
def add(
    player: Any, encoded: Any, fault_library: Callable[..., Any], tmp_path: Any
) -> Callable[..., Any]:
    """The subgraph's packed function over the fault library."""
    weights = np.arange(32, dtype=np.float32)
    (tmp_path / "weights.bin").write_bytes(weights.tobytes())
    tvm_ffi.get_global_func("nnfarm.nnapi.set_library")(str(fault_library()))
    tvm_ffi.get_global_func("nnfarm.nnapi.set_package_dir")(str(tmp_path))

    def make(change: Callable[[Any], None] | None = None) -> Any:
        if change is not None:
            change(encoded)
        return player(encoded).get_function(SYMBOL)

    return make


def call(function: Any, *arrays: np.ndarray[Any, Any]) -> None:
    function(*(tvm_ffi.from_dlpack(array) for array in arrays))


def test_a_python_application_can_call_it(add: Any) -> None:
    x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    function = add()
    for _ in range(3):
        call(function, x, out)
        np.testing.assert_array_equal(out, np.arange(32).reshape(4, 8) + 1.5)
    other = np.zeros((4, 8), np.float32)
    call(function, x, other)
    np.testing.assert_array_equal(out, other)


@pytest.mark.parametrize(
    ("shapes", "dtype", "message"),
    [
        ([(4, 8)], np.float32, "2 tensors are expected, 1 given"),
        ([(4, 9), (4, 8)], np.float32, "dimension 1 is 9, 8 expected"),
        ([(32,), (4, 8)], np.float32, "wrong rank"),
        ([(4, 8), (4, 8)], np.float64, "elements of 64 bits, 32 expected"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    add: Any, shapes: list[tuple[int, ...]], dtype: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(add(), *(np.zeros(shape, dtype) for shape in shapes))


def test_a_dimension_known_at_run_time_is_told_to_nnapi(add: Any) -> None:
    def make_dynamic(document: Any) -> None:
        document["operands"][0]["dims"] = [0, 8]

    x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    call(add(make_dynamic), x, out)
    np.testing.assert_array_equal(out, np.arange(32).reshape(4, 8) + 1.5)


Change = Callable[[Any], Any]


def put(*path: Any) -> Change:
    """Sets the value at the path's end: put("operands", 0, "type", 99)."""
    *way, key, value = path

    def change(document: Any) -> None:
        for step in way:
            document = document[step]
        document[key] = value

    return change


def remove(*path: Any) -> Change:
    *way, key = path

    def change(document: Any) -> None:
        for step in way:
            document = document[step]
        del document[key]

    return change


LARGE = 2**31
PER_CHANNEL = {"type": 11, "dims": [4, 8]}

BAD_DOCUMENTS: list[tuple[Change, str]] = [
    (put("format", "other"), "not an nnfarm.nnapi document"),
    (put("version", 2), "version 2; this player reads version 1"),
    (remove("version"), '"version" is missing'),
    (put("symbol", ""), "symbol is empty"),
    (put("level", 0), "level: 0 is outside 1..8"),
    (put("level", 9), "level: 9 is outside 1..8"),
    (put("level", True), "an integer is expected"),
    (put("level", 1e300), "an integer is expected"),
    (put("relaxed", 1), "true or false is expected"),
    (put("weights", "file", "../weights.bin"), "not a plain file name"),
    (put("weights", "file", ""), "not a plain file name"),
    (put("weights", "size", 0), "weights.size"),
    (remove("weights"), "offset without a weights file"),
    (put("operands", {}), "an array is expected"),
    (put("operands", 0, 7), "an object is expected"),
    (put("operands", 0, "type", 15), "0..14"),
    (put("operands", 0, "type", -1), "0..14"),
    (put("operands", 0, "dims", [-1]), "outside"),
    (put("operands", 0, "dims", [2**32]), "outside"),
    (put("operands", 0, "dims", [LARGE, LARGE, LARGE]), "dimensions overflow"),
    (put("operands", 1, "dims", [LARGE, LARGE, LARGE]), "dimensions overflow"),
    (put("operands", 0, "dims", "4"), "an array is expected"),
    (put("operands", 0, "dims", []), "a tensor has dimensions"),
    (put("operands", 2, "dims", [1]), "a scalar has no dimensions"),
    (put("operands", 0, "scale", "x"), "a number is expected"),
    (put("operands", 0, "scale", 1e39), "finite 32-bit float"),
    (put("operands", 0, "zero_point", 2**31), "zero_point"),
    (put("operands", 0, "channel_dim", 0), "type 11"),
    (put("operands", 0, PER_CHANNEL), '"channel_dim" is missing|type 11'),
    (put("operands", 0, {**PER_CHANNEL, "channel_dim": 2, "channel_scales": []}), "0..1"),
    (put("operands", 0, {**PER_CHANNEL, "channel_dim": 0, "channel_scales": [1.0]}), "match"),
    (
        put("operands", 0, {**PER_CHANNEL, "channel_dim": 0, "channel_scales": [1, 1, 1, 0]}),
        "must be positive",
    ),
    (put("operands", 1, "offset", 32), "multiple of 64"),
    (put("operands", 1, "offset", 64), "ends after the weights file"),
    (put("operands", 1, "offset", 2**62), "ends after the weights file"),
    (put("operands", 1, "size", 2**63 - 1), "ends after the weights file"),
    (put("operands", 1, "size", 64), "64 bytes, its type needs 128"),
    (put("operands", 1, "data", "AAAA"), "only one of"),
    (put("operands", 2, "data", "AAA"), "not base64"),
    (put("operands", 2, "data", "A*AA"), "not base64"),
    (put("operands", 2, "data", "AAAAAB=="), "not base64"),
    (put("operands", 2, "data", ""), "empty"),
    (put("operands", 2, "data", "AAAA"), "3 bytes, its type needs 4"),
    (put("operations", []), "no operations"),
    (put("operations", 0, "inputs", 0, 6), "0..5"),
    (put("operations", 0, "inputs", 0, -1), "0..5"),
    (put("operations", 0, "outputs", []), "without outputs"),
    (put("operations", 0, "outputs", [1]), "writes the constant operand 1"),
    (put("operations", 1, "outputs", [3]), "writes the operand 3 again"),
    (put("operations", 0, "inputs", [5, 1, 2]), "reads the operand 5 before it has a value"),
    (put("operations", 0, "code", 2**16), "code"),
    (put("inputs", [0, 0]), "again"),
    (put("inputs", [1]), "writes the constant"),
    (put("inputs", [99]), "0..5"),
    (put("outputs", []), "no outputs"),
    (put("outputs", [4]), "is a constant"),
    (put("operands", 0, "extension", ""), "name is empty"),
    (put("operands", 0, "extension_data", "AAAA"), "only an extension's type"),
    (put("operands", 0, "extension", 5), "a string is expected"),
]


@pytest.mark.parametrize(("change", "message"), BAD_DOCUMENTS)
def test_bad_documents_are_refused(player: Any, encoded: Any, change: Change, message: str) -> None:
    change(encoded)
    with pytest.raises(ValueError, match=message):
        player(encoded)


@pytest.fixture
def create(player: Any) -> Any:
    del player  # loads the library
    return tvm_ffi.get_global_func("nnfarm.nnapi.module_create")


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"[" * 200000, b'{"a": "', b"{}\0", b"\xff\xfe", b'"\\ud800"'],
)
def test_text_that_is_no_model_is_refused(create: Any, text: bytes) -> None:
    with pytest.raises(ValueError, match="encoded model"):
        create(text)


def test_every_truncation_is_refused(create: Any, encoded: Any) -> None:
    text = json.dumps(encoded).encode()
    for length in range(len(text)):
        with pytest.raises(ValueError, match="encoded model"):
            create(text[:length])


def test_damaged_bytes_load_or_are_refused(create: Any, encoded: Any) -> None:
    """A seeded fuzz: whatever the damage, an error or a module, never a crash."""
    text = json.dumps(encoded).encode()
    source = random.Random(20)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(text)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.choice(b'0159-.eE{}[]",:\\ x\x80')
        try:
            assert create(bytes(damaged)).kind == "nnfarm.nnapi"
        except ValueError:
            refused += 1
    assert refused > 1000


def test_large_inline_data_stays_alive(add: Any) -> None:
    """NNAPI keeps the pointer of values above 128 bytes."""

    def grow(document: Any) -> None:
        document["operands"] = [
            {**operand, "dims": [8, 8]} if operand["type"] == 3 else operand
            for operand in document["operands"]
        ]
        for index, value in ((1, 2.0), (4, 3.0)):
            data = np.full((8, 8), value, np.float32).tobytes()
            document["operands"][index] = {
                "type": 3,
                "dims": [8, 8],
                "data": base64.b64encode(data).decode(),
            }
        del document["weights"]

    x, out = np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
    call(add(grow), x, out)
    np.testing.assert_array_equal(out, np.full((8, 8), 6.0))
