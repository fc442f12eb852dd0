"""Groups of a convolution that are narrower than a register, joined until they fill one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def join_groups(weight: NDArray[Any], groups: int, lanes: int) -> tuple[NDArray[Any], int]:
    """Weights of fewer and wider groups with the same result: blocks around the diagonal.

    Most products are by zero then, but a register of them costs what the scalar loop it replaces
    takes for one or two.

    Args:
        weight: (height, width, depth of a group, output channels of all groups).
        groups: of the convolution.
        lanes: a group's channels are whole registers of so many afterwards, or there is one group.

    Returns:
        (height, width, depth of a wider group, output channels) and the number of groups. The last
        groups may be of zeros, over input channels that do not exist. Both are as they are where
        the groups are wide enough, or depthwise.
    """
    height, width, depth, channels = weight.shape
    per_group = channels // groups
    if groups == 1 or per_group % lanes == 0 or depth == per_group == 1:
        return weight, groups
    count = min(lanes // math.gcd(lanes, per_group), groups)
    wider = -(-groups // count)
    split = np.zeros((height, width, depth, wider * count, per_group), weight.dtype)
    split[:, :, :, :groups] = weight.reshape(height, width, depth, groups, per_group)
    split = split.reshape(height, width, depth, wider, count, per_group)
    joined = np.zeros((height, width, count, depth, wider, count, per_group), weight.dtype)
    for member in range(count):
        joined[:, :, member, :, :, member] = split[:, :, :, :, member]
    return joined.reshape(height, width, count * depth, wider * count * per_group), wider
