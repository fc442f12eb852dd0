"""What a TIR function is written with: buffers that can be assigned to, variables, conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm.script.ir_builder import tirx as T  # noqa: N812 - its name everywhere

Value = Any
"""A TIR expression or buffer; TVM's builder has no types."""


def parameter(name: str, shape: tuple[int, ...], dtype: str = "float32") -> Value:
    """The function's next parameter."""
    return T.buffer_proxy(T.arg(name, T.Buffer(shape, dtype)))


def memory(shape: tuple[int, ...], dtype: str, scope: str = "global") -> Value:
    """Memory of the function's own."""
    return T.buffer_proxy(T.alloc_buffer(shape, dtype, scope=scope))


def variable(value: int) -> Value:
    """An integer that changes, as a buffer of one element."""
    scalar = memory((1,), "int32", "local")
    scalar[0] = T.int32(value)
    return scalar


@contextmanager
def when(condition: Value) -> Iterator[None]:
    """Statements that are executed where a condition holds."""
    with T.If(condition), T.Then():
        yield
