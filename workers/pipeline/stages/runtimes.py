"""The runtimes models come with: the one that made a format says what its models compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.tensors import ModelSignature
from workers.frontends.onnx_files import onnx_path

Array = NDArray[Any]
Inputs = Mapping[str, Array]
Infer = Callable[[Inputs], list[Array]]
"""One inference: inputs by name, outputs in the signature's order."""


def run_original(
    model: Path, model_format: ModelFormat, signature: ModelSignature, inputs: Inputs
) -> dict[str, Array]:
    """Outputs of every sample, stacked, by name.

    Args:
        model: the model file.
        model_format: whose runtime runs it.
        signature: its border.
        inputs: arrays by name, samples first.

    Raises:
        NnfarmError: `compile.reference_failed`.
    """
    title, load = _RUNTIMES[model_format]
    names = [spec.name for spec in signature.outputs]
    try:
        infer = load(model, signature)
        count = len(next(iter(inputs.values())))
        answers = [infer({n: array[i] for n, array in inputs.items()}) for i in range(count)]
    except NnfarmError:
        raise
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise NnfarmError(
            "compile.reference_failed",
            f"{title} cannot run the original model: {lines[0] if lines else error!r}",
        ) from error
    return {name: np.stack([answer[k] for answer in answers]) for k, name in enumerate(names)}


# Each import takes time and memory that only this stage needs.


def _load_onnx(model: Path, signature: ModelSignature) -> Infer:
    import onnxruntime

    file = onnx_path(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [spec.name for spec in signature.outputs]
    return lambda inputs: list(session.run(names, dict(inputs)))


def _load_tflite(model: Path, signature: ModelSignature) -> Infer:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(model))
    for detail, spec in zip(interpreter.get_input_details(), signature.inputs, strict=True):
        if tuple(detail["shape"]) != spec.shape:  # a dimension the file leaves open
            interpreter.resize_tensor_input(detail["index"], list(spec.shape))
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    results = [detail["index"] for detail in interpreter.get_output_details()]

    def infer(inputs: Inputs) -> list[Array]:
        for place, spec in zip(places, signature.inputs, strict=True):
            interpreter.set_tensor(place, inputs[spec.name])
        interpreter.reset_all_variables()  # each sample begins with a state of its own
        interpreter.invoke()
        return [np.array(interpreter.get_tensor(place)) for place in results]

    return infer


def _load_pytorch(model: Path, signature: ModelSignature) -> Infer:
    import torch

    from workers.frontends.pytorch.archive import load_program

    module = load_program(model, {s.name: s.shape for s in signature.inputs}).module()

    def infer(inputs: Inputs) -> list[Array]:
        tensors = [torch.from_numpy(np.ascontiguousarray(inputs[s.name])) for s in signature.inputs]
        with torch.no_grad():
            answer = module(*tensors)
        return [item.numpy() for item in torch.utils._pytree.tree_leaves(answer)]

    return infer


_RUNTIMES: Mapping[ModelFormat, tuple[str, Callable[[Path, ModelSignature], Infer]]] = {
    ModelFormat.ONNX: ("ONNX Runtime", _load_onnx),
    ModelFormat.TFLITE: ("LiteRT", _load_tflite),
    ModelFormat.PYTORCH: ("PyTorch", _load_pytorch),
}
