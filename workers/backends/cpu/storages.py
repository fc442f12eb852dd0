"""Memory that tensors take in turns, planned before anything runs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Lifetime:
    """A tensor: its size, and the first and last step at which it is in memory."""

    size_bytes: int
    first: int
    last: int


def share(lifetimes: Sequence[Lifetime]) -> tuple[list[int], list[int]]:
    """Storages for tensors, so that no two that live at the same time have the same.

    The least of a few greedy plans: none of the orders and choices is best for every network.

    Returns:
        The number of each tensor's storage, and the bytes of each storage.
    """
    plans = [
        _greedy(lifetimes, order, cost) for order in (_by_size, _by_time) for cost in (_idle, _gap)
    ]
    return min(plans, key=lambda plan: sum(plan[1]))


@dataclass
class _Storage:
    """Its tensors are in order, as first and last step of each."""

    size_bytes: int = 0
    tensors: list[tuple[int, int]] = field(default_factory=list)

    def gap(self, wanted: Lifetime) -> int | None:
        """Steps between a tensor and its nearer neighbour; None where another lives then."""
        at = bisect_left(self.tensors, (wanted.first, wanted.last))
        before = [wanted.first - last for _, last in self.tensors[max(at - 1, 0) : at]]
        behind = [first - wanted.last for first, _ in self.tensors[at : at + 1]]
        gap = min(before + behind, default=1)
        return gap if gap > 0 else None

    def growth(self, wanted: Lifetime) -> int:
        return max(wanted.size_bytes - self.size_bytes, 0)


def _by_size(tensor: Lifetime) -> tuple[int, int]:
    return -tensor.size_bytes, tensor.first


def _by_time(tensor: Lifetime) -> tuple[int, int]:
    return tensor.first, -tensor.size_bytes


def _idle(storage: _Storage, wanted: Lifetime) -> int:
    """Bytes of a storage that a tensor would not use."""
    return max(storage.size_bytes - wanted.size_bytes, 0)


def _gap(storage: _Storage, wanted: Lifetime) -> int:
    return storage.gap(wanted) or 0


def _greedy(
    lifetimes: Sequence[Lifetime],
    order: Callable[[Lifetime], tuple[int, int]],
    cost: Callable[[_Storage, Lifetime], int],
) -> tuple[list[int], list[int]]:
    storages: list[_Storage] = []
    chosen = [0] * len(lifetimes)
    for number in sorted(range(len(lifetimes)), key=lambda n: order(lifetimes[n])):
        tensor = lifetimes[number]
        free = [i for i, storage in enumerate(storages) if storage.gap(tensor) is not None]
        if not free:
            free = [len(storages)]
            storages.append(_Storage())
        place = min(free, key=lambda i: (storages[i].growth(tensor), cost(storages[i], tensor)))
        storages[place].size_bytes += storages[place].growth(tensor)
        insort(storages[place].tensors, (tensor.first, tensor.last))
        chosen[number] = place
    return chosen, [storage.size_bytes for storage in storages]
