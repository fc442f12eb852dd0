"""Sorting functions of a bundle, which TVM's generated code calls by name, against NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_CHILD = """
import ctypes, sys
import numpy as np
import tvm_ffi

ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
random = np.random.default_rng(4)

def tensor(array):
    return tvm_ffi.from_dlpack(array)

for dtype in ("float32", "int32", "int64", "int8", "uint8"):
    # Few values, so that many are equal: their order is the order they had.
    x = random.integers(0, 9, (3, 50, 4)).astype(dtype)
    for axis in (1, -1):
        for ascending in (False, True):
            keys = x.astype(np.int64) if ascending else -x.astype(np.int64)
            order = np.argsort(keys, axis=axis, kind="stable")
            for places in ("int32", "int64"):
                found = np.zeros(x.shape, places)
                argsort = tvm_ffi.get_global_func("tvm.contrib.sort.argsort")
                argsort(tensor(x), tensor(found), axis, ascending)
                assert (found == order).all(), (dtype, axis, ascending)
                first = np.take(order, range(3), axis)
                values, where = np.zeros(first.shape, dtype), np.zeros(first.shape, places)
                topk = tvm_ffi.get_global_func("tvm.contrib.sort.topk")
                topk(tensor(x), tensor(values), tensor(where), 3, axis, "both", ascending)
                assert (where == first).all()
                assert (values == np.take_along_axis(x, first, axis)).all()
            found = np.zeros(x.shape, dtype)
            sort = tvm_ffi.get_global_func("tvm.contrib.sort.sort")
            sort(tensor(x), tensor(found), axis, ascending)
            assert (found == np.take_along_axis(x, order, axis)).all()
try:
    topk(tensor(x), tensor(values), tensor(where), 3, 7, "both", True)
except Exception as error:
    assert "No axis 7" in str(error), error
else:
    raise AssertionError("an axis that is not there")
print("sorted")
"""


def test_they_sort_as_numpy_does(bundle: Path) -> None:
    """In a process without TVM, whose own functions would be found first."""
    result = subprocess.run(
        [sys.executable, "-c", _CHILD, str(bundle / "libnnfarm_runtime.so")],
        env=os.environ | {"LD_LIBRARY_PATH": str(bundle)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,  # the assertion shows the child's own words
    )
    assert result.stdout == "sorted\n", result.stderr[-2000:]
