"""Open dimensions of an ONNX model's inputs, fixed before import.

Exporters leave the batch open by default, and NNAPI compiles for fixed shapes. A batch of 1 is what
runs on a phone; any other open dimension needs the user's word and stays open without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import onnx

from service.contracts.errors import NnfarmError

_BATCH_NAME = re.compile(r"^(n|b|bs|batch|batch_?size|batch_?dim|n_?batch)$", re.IGNORECASE)
_IMAGE_RANK = 4


def fix_shapes(graph: onnx.GraphProto, wanted: Mapping[str, Sequence[int]]) -> None:
    """Write fixed sizes into the model's inputs, and into outputs that share a dimension's name.

    Args:
        graph: changed in place.
        wanted: whole shapes by input name; dimensions the model fixes must agree.

    Raises:
        NnfarmError: `compile.bad_option`, an unknown input or a shape that does not fit.
    """
    initializers = {init.name for init in graph.initializer}
    inputs = {v.name: v for v in graph.input if v.name not in initializers}
    unknown = sorted(set(wanted) - set(inputs))
    if unknown:
        raise NnfarmError(
            "compile.bad_option",
            f"The model has no input {unknown[0]!r}; it has {', '.join(sorted(inputs))}.",
            input=unknown[0],
        )
    sizes: dict[str, int] = {}
    for name, value in inputs.items():
        if name in wanted:
            _fix_input(value, wanted[name], sizes)
        else:
            _fix_batch(value, sizes)
    for value in (*inputs.values(), *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes and not dim.HasField("dim_value"):
                dim.dim_value = sizes[dim.dim_param]
    # Shapes noted inside the graph may name the dimension, too; they are inferred anew.
    del graph.value_info[:]


def open_dimensions(graph: onnx.GraphProto) -> str:
    """Inputs whose dimensions are still open, for people; empty where there are none."""
    initializers = {init.name for init in graph.initializer}
    shapes = {v.name: _written(v) for v in graph.input if v.name not in initializers}
    left = [f"{n!r} [{', '.join(map(str, s))}]" for n, s in shapes.items() if not _is_known(s)]
    return f"dimensions are open; give shapes of: {'; '.join(left)}" if left else ""


def _written(value: onnx.ValueInfoProto) -> list[int | str]:
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else (d.dim_param or "?") for d in dims]


def _is_known(shape: Sequence[int | str]) -> bool:
    return all(isinstance(size, int) for size in shape)


def _fix_input(value: onnx.ValueInfoProto, shape: Sequence[int], sizes: dict[str, int]) -> None:
    dims = value.type.tensor_type.shape.dim
    fits = len(dims) == len(shape) and all(
        not d.HasField("dim_value") or d.dim_value == size
        for d, size in zip(dims, shape, strict=False)
    )
    if not fits:
        model_shape = _written(value)
        raise NnfarmError(
            "compile.bad_option",
            f"Shape {list(shape)} does not fit input {value.name!r} of shape {model_shape}.",
            input=value.name,
        )
    for dim, size in zip(dims, shape, strict=True):
        _fix(dim, size, sizes)


def _fix_batch(value: onnx.ValueInfoProto, sizes: dict[str, int]) -> None:
    dims = value.type.tensor_type.shape.dim
    if not dims or dims[0].HasField("dim_value"):
        return
    if len(dims) == _IMAGE_RANK or _BATCH_NAME.match(dims[0].dim_param):
        _fix(dims[0], 1, sizes)


def _fix(dim: onnx.TensorShapeProto.Dimension, size: int, sizes: dict[str, int]) -> None:
    if dim.HasField("dim_value"):
        return
    if dim.dim_param:
        sizes.setdefault(dim.dim_param, size)
    dim.dim_value = size
