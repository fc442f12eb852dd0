"""Open dimensions of a TFLite file, fixed: LiteRT itself says what follows from them.

A file states shapes for a batch of 1 and says beside them which dimensions are open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from service.contracts.errors import NnfarmError
from workers.frontends.tflite.model import Tensor, TFLiteModel


def resized(path: Path, model: TFLiteModel, wanted: Mapping[str, Sequence[int]]) -> TFLiteModel:
    """The model with inputs of other shapes, where the file leaves these open.

    Args:
        path: the file.
        model: what is in it.
        wanted: shapes by input name.

    Raises:
        NnfarmError: `compile.bad_option`, an unknown input, a dimension that is not open, or a
            shape that the model's own operators do not take.
    """
    own = {model.tensors[i].name: model.tensors[i] for i in model.inputs}
    for name, shape in wanted.items():
        if name not in own:
            known = ", ".join(sorted(own))
            raise _bad(name, f"The model has no input {name!r}; it has {known}.")
        _check(own[name], tuple(shape))
    if all(tuple(shape) == own[name].shape for name, shape in wanted.items()):
        return model
    try:
        shapes = _shapes(path, model, wanted)
    except (RuntimeError, ValueError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name, shape = next(iter(wanted.items()))
        reason = lines[0] if lines else repr(error)
        message = f"LiteRT cannot give input {name!r} the shape {list(shape)}: {reason}"
        raise _bad(name, message) from error
    tensors = [
        tensor if tensor.value is not None or index not in shapes else _of(tensor, shapes[index])
        for index, tensor in enumerate(model.tensors)
    ]
    return replace(model, tensors=tuple(tensors))


def _check(tensor: Tensor, shape: tuple[int, ...]) -> None:
    stated = tensor.open_shape
    fits = len(shape) == len(stated) and all(
        own in (-1, size) for own, size in zip(stated, shape, strict=True)
    )
    if not fits:
        raise _bad(
            tensor.name,
            f"Input {tensor.name!r} has shape {list(stated)} in the TFLite file, which fixes all "
            f"but those of -1; {list(shape)} needs a file converted for it.",
        )


def _of(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return replace(tensor, shape=shape)


def _shapes(
    path: Path, model: TFLiteModel, wanted: Mapping[str, Sequence[int]]
) -> Mapping[int, tuple[int, ...]]:
    """Shapes of all tensors in a run with zeros; some operators say theirs only then."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=str(path),
        # An accelerator of LiteRT's would hide what is inside of it.
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    )
    for index in model.inputs:
        shape = wanted.get(model.tensors[index].name)
        if shape is not None:
            interpreter.resize_tensor_input(index, list(shape))
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    interpreter.invoke()
    details = interpreter.get_tensor_details()
    return {
        detail["index"]: tuple(int(size) for size in detail["shape"])
        for detail in details
        if detail["index"] < len(model.tensors)
    }


def _bad(name: str, message: str) -> NnfarmError:
    return NnfarmError("compile.bad_option", message, input=name)
