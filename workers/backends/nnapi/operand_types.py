"""OperandCode of NeuralNetworksTypes.h, and the names the table of operations has for elements."""

from __future__ import annotations

from enum import IntEnum


class OperandType(IntEnum):
    """OperandCode."""

    FLOAT32 = 0
    INT32 = 1
    UINT32 = 2
    TENSOR_FLOAT32 = 3
    TENSOR_INT32 = 4
    TENSOR_QUANT8_ASYMM = 5
    BOOL = 6
    TENSOR_QUANT16_SYMM = 7
    TENSOR_FLOAT16 = 8
    TENSOR_BOOL8 = 9
    FLOAT16 = 10
    TENSOR_QUANT8_SYMM_PER_CHANNEL = 11
    TENSOR_QUANT16_ASYMM = 12
    TENSOR_QUANT8_SYMM = 13
    TENSOR_QUANT8_ASYMM_SIGNED = 14
    MODEL = 15


TENSOR_TYPES: dict[str, OperandType] = {
    "float32": OperandType.TENSOR_FLOAT32,
    "float16": OperandType.TENSOR_FLOAT16,
    "int32": OperandType.TENSOR_INT32,
    "bool": OperandType.TENSOR_BOOL8,
    "uint8": OperandType.TENSOR_QUANT8_ASYMM,
    "int8": OperandType.TENSOR_QUANT8_ASYMM_SIGNED,
}
"""Operand types of graph tensors; 8-bit integers always stand for quantized numbers."""

ELEMENTS: dict[str, OperandType] = {
    "float32": OperandType.TENSOR_FLOAT32,
    "float16": OperandType.TENSOR_FLOAT16,
    "int32": OperandType.TENSOR_INT32,
    "bool": OperandType.TENSOR_BOOL8,
    "quant8_asymm": OperandType.TENSOR_QUANT8_ASYMM,
    "quant8_asymm_signed": OperandType.TENSOR_QUANT8_ASYMM_SIGNED,
    "quant8_symm": OperandType.TENSOR_QUANT8_SYMM,
    "quant8_symm_per_channel": OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL,
    "quant16_symm": OperandType.TENSOR_QUANT16_SYMM,
    "quant16_asymm": OperandType.TENSOR_QUANT16_ASYMM,
}
"""Tensor types by the names of the table of operations."""
