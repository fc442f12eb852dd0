"""An NNAPI model in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from workers.backends.nnapi.operand_types import OperandType


class Activation(IntEnum):
    """FuseCode of NeuralNetworksTypes.h."""

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3


@dataclass(frozen=True)
class Operand:
    """One operand.

    Attributes:
        type: OperandCode.
        dims: shape; () for scalars.
        value: little-endian bytes of a constant.
        scale: of quantized numbers; 0 where there is none, or one a channel.
        zero_point: of quantized numbers.
        channel_dim: the channels' axis of per-channel quantized numbers.
        channel_scales: their scales.
        is_omitted: whether it stands for an optional operand that has no value.
    """

    type: OperandType
    dims: tuple[int, ...]
    value: bytes | None = None
    scale: float = 0.0
    zero_point: int = 0
    channel_dim: int | None = None
    channel_scales: tuple[float, ...] = ()
    is_omitted: bool = False


@dataclass(frozen=True)
class Operation:
    """One operation; operands by index."""

    code: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass
class Model:
    """Operands, operations in topological order, inputs and outputs by operand index.

    `relaxed` allows float32 to be computed as float16 (feature level 2).
    """

    operands: list[Operand] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    level: int = 1
    relaxed: bool = False
