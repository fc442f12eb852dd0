"""Plans of memory: nothing that is needed at the same time shares bytes."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from workers.backends.cpu.storages import Lifetime, share

lifetimes = st.lists(
    st.builds(
        lambda size, first, length: Lifetime(size, first, first + length),
        st.integers(1, 1000),
        st.integers(0, 30),
        st.integers(0, 8),
    ),
    max_size=30,
)


@given(lifetimes)
def test_tensors_of_one_storage_live_one_after_the_other(tensors: list[Lifetime]) -> None:
    numbers, sizes = share(tensors)
    assert all(
        size >= tensor.size_bytes
        for tensor, size in zip(tensors, (sizes[n] for n in numbers), strict=True)
    )
    for (a, first), (b, second) in combinations(zip(tensors, numbers, strict=True), 2):
        assert first != second or a.last < b.first or b.last < a.first


@given(lifetimes)
def test_it_takes_no_more_than_all_and_no_less_than_what_lives_at_once(
    tensors: list[Lifetime],
) -> None:
    _, sizes = share(tensors)
    peak = max(
        (sum(t.size_bytes for t in tensors if t.first <= step <= t.last) for step in range(40)),
    )
    assert peak <= sum(sizes) <= sum(t.size_bytes for t in tensors)


def test_growing_tensors_need_the_two_largest() -> None:
    chain = [Lifetime(2**n, n, n + 1) for n in range(8)]
    assert sum(share(chain)[1]) == 2**7 + 2**6
