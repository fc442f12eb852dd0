from __future__ import annotations

import itertools

from workers.tuning.timing import interleaved, is_faster, timing


def test_median_and_half_the_quartiles_distance() -> None:
    found = timing([10.0, 30.0, 20.0, 40.0, 50.0])
    assert (found.median_us, found.spread_us) == (30.0, 15.0)


def test_faster_means_beyond_doubt() -> None:
    steady = [100.0] * 8
    assert is_faster(steady, [90.0] * 8)
    assert not is_faster(steady, [98.0] * 8)  # less than is worth a record
    assert not is_faster(steady, [60.0] * 5 + [150.0] * 3)  # a better median, but not always
    # A machine that slows down slows both.
    assert is_faster([100.0, 400.0] * 4, [80.0, 320.0] * 4)


def test_functions_take_turns_and_short_ones_are_called_often() -> None:
    order: list[str] = []
    ticks = itertools.count()

    def clock() -> float:
        return next(ticks) * 0.0005

    times = interleaved([lambda: order.append("a"), lambda: order.append("b")], 3, clock)
    assert order[:2] == ["a", "b"]
    runs = [name for name, _ in itertools.groupby(order[2:])]
    assert runs == ["a", "b"] * 3
    assert [len(rounds) for rounds in times] == [3, 3]
    assert len(order) > 2 + 6  # 250 us a call: several calls in each turn
