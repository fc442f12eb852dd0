"""Whether the table admits an operation with given operands, and from which feature level on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workers.backends.nnapi.operand_types import ELEMENTS, OperandType
from workers.backends.nnapi.opset.table import OperationSpec, Role

Types = Sequence[OperandType | None]
"""Types of operands in order; None stands for an operand without a value."""

_CHANNEL_SCALES_LEVEL = 3


def least_level(spec: OperationSpec, inputs: Types, outputs: Types) -> int | None:
    """The least feature level that has an operation with these operands; None: none has.

    Args:
        spec: the operation.
        inputs: types of its inputs.
        outputs: types of its results.
    """
    levels = (
        _level_of_form(spec, form, inputs, outputs) for form in (spec.inputs, spec.short) if form
    )
    return min((level for level in levels if level is not None), default=None)


def _level_of_form(
    spec: OperationSpec, form: Sequence[Role], inputs: Types, outputs: Types
) -> int | None:
    taken, given = _filled(form, len(inputs)), _filled(spec.outputs, len(outputs))
    if taken is None or given is None:
        return None
    pairs = [*zip(taken, inputs, strict=True), *zip(given, outputs, strict=True)]
    element = next((kind for role, kind in pairs if role.kind == "T" and kind), None)
    levels = [spec.level]
    if element is not None:
        name = next((n for n, kind in ELEMENTS.items() if kind is element), "")
        level = spec.types.get(name, spec.same.get(name))
        if level is None:
            return None
        levels.append(level)
    for role, kind in pairs:
        level = _level_of_operand(spec, role, kind, element)
        if level is None:
            return None
        levels.append(level)
    return max(levels)


def _filled(roles: Sequence[Role], count: int) -> list[Role] | None:
    """A role for each of `count` operands; None where the list cannot have that length."""
    filled: list[Role] = []
    missing = count - sum(not role.is_optional for role in roles)
    if missing < 0:
        return None
    for place, role in enumerate(roles):
        if role.is_repeated:
            filled += [role] * (missing + 1)
            missing = 0
        elif not role.is_optional:
            filled.append(role)
        elif role.is_joined:
            if roles[place - 1] in filled:
                filled.append(role)
        elif missing > 0:
            group = 1 + _joined(roles[place + 1 :])
            if group > missing:
                return None
            filled.append(role)
            missing -= group
    return filled if missing == 0 and len(filled) == count else None


def _joined(roles: Sequence[Role]) -> int:
    return next((n for n, role in enumerate(roles) if not role.is_joined), len(roles))


def _level_of_operand(
    spec: OperationSpec, role: Role, kind: OperandType | None, element: OperandType | None
) -> int | None:
    if kind is None:
        return role.level if role.may_be_absent else None
    if role.kind == "any":
        return role.level
    if role.kind == "result":
        name = next((name for name, tensor in ELEMENTS.items() if tensor is kind), "")
        if any(element is ELEMENTS[same] for same in spec.same):
            return spec.same[name] if kind is element else None
        return spec.results.get(name)
    if role.kind == "weights" and kind is OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL:
        return _CHANNEL_SCALES_LEVEL if element in _QUANTIZED else None
    return role.level if kind in _allowed(role.kind, element) else None


_QUANTIZED = (OperandType.TENSOR_QUANT8_ASYMM, OperandType.TENSOR_QUANT8_ASYMM_SIGNED)

_FIXED: Mapping[str, tuple[OperandType, ...]] = {
    "int": (OperandType.INT32,),
    "bool": (OperandType.BOOL,),
    "float": (OperandType.FLOAT32,),
    "int[]": (OperandType.TENSOR_INT32,),
    "bool[]": (OperandType.TENSOR_BOOL8,),
    "model": (OperandType.MODEL,),
    "condition": (OperandType.BOOL, OperandType.TENSOR_BOOL8),
    **{name: (kind,) for name, kind in ELEMENTS.items() if name.startswith("quant")},
}


def _real(element: OperandType) -> OperandType:
    half = element is OperandType.TENSOR_FLOAT16
    return OperandType.FLOAT16 if half else OperandType.FLOAT32


def _scalar(element: OperandType) -> OperandType:
    is_float = element in (OperandType.TENSOR_FLOAT32, OperandType.TENSOR_FLOAT16)
    return _real(element) if is_float else OperandType.INT32


def _or_quantized(other: OperandType) -> Callable[[OperandType], OperandType]:
    return lambda element: other if element in _QUANTIZED else element


_BY_ELEMENT: Mapping[str, Callable[[OperandType], OperandType]] = {
    "T": lambda element: element,
    "weights": lambda element: element,
    "bias": _or_quantized(OperandType.TENSOR_INT32),
    "region": _or_quantized(OperandType.TENSOR_QUANT16_ASYMM),
    "anchor": _or_quantized(OperandType.TENSOR_QUANT16_SYMM),
    "real": _real,
    "scalar": _scalar,
}
"""Operand type of a kind that follows the operation's element type."""

KINDS = frozenset({"any", "result"} | set(_FIXED) | set(_BY_ELEMENT))
"""Kinds a role of the table may have."""


def _allowed(kind: str, element: OperandType | None) -> tuple[OperandType, ...]:
    if kind in _FIXED:
        return _FIXED[kind]
    return (_BY_ELEMENT[kind](element),) if element is not None else ()
