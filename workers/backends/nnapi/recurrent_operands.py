"""Which operation of NNAPI a recurrent layer is, and its operands by the roles of the table."""

from __future__ import annotations

from collections.abc import Mapping

from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.opset import OperationSpec, opset
from workers.graph.recurrence.layer import FORWARD, Recurrence

ACTIVATIONS = {"none": 0, "relu": 1, "relu6": 3, "tanh": 4, "sigmoid": 6}
"""NNAPI's numbers of what a cell may be activated by. It has no RELU1 there."""


def operation_of(recurrence: Recurrence) -> OperationSpec:
    """NNAPI's operation of a layer that does not only read backwards."""
    cell = recurrence.layer.cell
    if recurrence.is_step:
        return opset()[cell]
    ways = "BIDIRECTIONAL" if len(recurrence.layer.ways) > 1 else "UNIDIRECTIONAL"
    return opset()[f"{ways}_SEQUENCE_{cell}"]


def states_level(recurrence: Recurrence) -> int:
    """From which level on the operation gives the last states."""
    roles = operation_of(recurrence).outputs
    return next(role.level for role in roles if role.name.endswith("state_out"))


def norms_level(recurrence: Recurrence) -> int:
    """From which level on the operation normalizes its gates, if the layer does."""
    if not any(name.endswith("_norm") for name in recurrence.operands):
        return operation_of(recurrence).level
    roles = operation_of(recurrence).inputs
    return next(role.level for role in roles if role.name.endswith("_norm"))


def input_operands(
    recurrence: Recurrence, builder: ModelBuilder, is_merged: bool
) -> Mapping[str, int]:
    """Operands by role; optional ones that the layer does not have are given without value.

    Args:
        recurrence: the layer.
        builder: what the model is written with.
        is_merged: whether the outputs of two directions are one output.
    """
    given = dict(recurrence.operands)
    if len(recurrence.layer.ways) == 1:
        given |= recurrence.of_way(FORWARD)
    scalars = _scalars(recurrence, is_merged)
    data = builder.operand(recurrence.data)
    found: dict[str, int] = {}
    for role in operation_of(recurrence).inputs:
        if role.name in scalars:
            found[role.name] = _scalar(builder, role.kind, scalars[role.name], data)
        elif role.name in given:
            found[role.name] = builder.operand(given[role.name])
        elif not role.is_optional:
            found[role.name] = builder.omitted(data)
    return found


def _scalars(recurrence: Recurrence, is_merged: bool) -> Mapping[str, float]:
    layer = recurrence.layer
    return {
        "activation": ACTIVATIONS[layer.activation],
        "cell_clip": layer.cell_clip,
        "projection_clip": layer.projection_clip,
        "time_major": layer.is_time_major,
        "merge_outputs": is_merged,
    }


def _scalar(builder: ModelBuilder, kind: str, value: float, tensor: int) -> int:
    if kind == "real":
        return builder.real(value, tensor)
    return builder.bool(bool(value)) if kind == "bool" else builder.int32(int(value))
