"""What the CPU part is compared with: one call of each engine over the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tvm
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray
from tvm import relax

Feeds = Mapping[str, NDArray[Any]]
Run = Callable[[], list[NDArray[Any]]]


def reference_name(path: Path) -> str:
    """The runtime a model's format comes from."""
    return "litert" if path.suffix == ".tflite" else "onnxruntime"


def reference_run(path: Path, feeds: Feeds, threads: int) -> Run:
    """A call of the model's own runtime.

    Args:
        path: an ONNX or a TFLite model.
        feeds: inputs in the model's order.
        threads: it may use.
    """
    run = _litert_run if path.suffix == ".tflite" else _onnxruntime_run
    return run(path, feeds, threads)


def feeds_of(path: Path) -> dict[str, NDArray[Any]]:
    """Inputs of a model: normal values, small integers for what is not real."""
    if path.suffix == ".tflite":
        details = Interpreter(str(path)).get_input_details()
        inputs = [(d["name"], d["shape"], np.dtype(d["dtype"])) for d in details]
    else:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        inputs = [(i.name, i.shape, _dtype(i.type)) for i in session.get_inputs()]
    random = np.random.default_rng(0)
    feeds: dict[str, NDArray[Any]] = {}
    for name, shape, dtype in inputs:
        if dtype.kind == "f":
            feeds[name] = random.standard_normal(shape).astype(dtype)
        else:  # token ids, of which small ones are in every vocabulary, or a quantized image
            limit = 128 if dtype.itemsize == 1 else 2
            feeds[name] = random.integers(0, limit, shape).astype(dtype)
    return feeds


def tvm_run(executable: relax.VMExecutable, feeds: Feeds) -> Run:
    """A call of a compiled model."""
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    inputs = [tvm.runtime.tensor(array) for array in feeds.values()]

    def run() -> list[NDArray[Any]]:
        result = main(*inputs)
        outputs = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
        return [output.numpy() for output in outputs]

    return run


def _onnxruntime_run(path: Path, feeds: Feeds, threads: int) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: list(session.run(None, dict(feeds)))


def _litert_run(path: Path, feeds: Feeds, threads: int) -> Run:
    interpreter = Interpreter(str(path), num_threads=threads)
    interpreter.allocate_tensors()
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run() -> list[NDArray[Any]]:
        for index, array in zip(inputs, feeds.values(), strict=True):
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return run


def _dtype(name: str) -> np.dtype[Any]:
    """The dtype of ONNX Runtime's `tensor(...)`."""
    inner = name[len("tensor(") : -1]
    return np.dtype({"float": "float32", "double": "float64"}.get(inner, inner))
