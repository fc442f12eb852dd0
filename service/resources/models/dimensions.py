"""Sizes that no device can hold, whatever the model's format."""

from __future__ import annotations

import math
from collections.abc import Sequence

from service.contracts.errors import NnfarmError

_MAX_DIM = 2**31 - 1  # NNAPI and TVM's kernels count in 32 bits
_MAX_ELEMENTS = 2**31


def check_shape(name: str, dims: Sequence[int]) -> None:
    """Refuse a tensor that is out of bounds.

    Raises:
        NnfarmError: ``model.bad_dimension``.
    """
    for dim in dims:
        if not 0 <= dim <= _MAX_DIM:
            raise NnfarmError(
                "model.bad_dimension",
                f"Tensor {name!r} has dimension {dim}; 0 to {_MAX_DIM} are possible.",
                tensor=name,
                dimension=dim,
            )
    if math.prod(dims) > _MAX_ELEMENTS:
        raise NnfarmError(
            "model.bad_dimension",
            f"Tensor {name!r} has {math.prod(dims)} elements; {_MAX_ELEMENTS} are possible.",
            tensor=name,
        )
