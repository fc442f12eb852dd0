from __future__ import annotations

import math

import pytest

from device_farm.measure.latency import latency_stats


def test_statistics_of_known_samples() -> None:
    stats = latency_stats([float(n) for n in range(1, 101)], simulated=False)
    assert (stats.count, stats.min_us, stats.max_us) == (100, 1.0, 100.0)
    assert stats.median_us == 50.5
    assert stats.mean_us == 50.5
    assert stats.p90_us == pytest.approx(90.1)
    assert stats.p99_us == pytest.approx(99.01)
    assert stats.mad_us == 25.0
    assert not stats.simulated


def test_one_sample_is_every_percentile() -> None:
    stats = latency_stats([7.0], simulated=True)
    assert {stats.min_us, stats.median_us, stats.p99_us, stats.max_us} == {7.0}
    assert stats.mad_us == 0.0
    assert stats.simulated


@pytest.mark.parametrize("samples", [[], [1.0, math.nan], [1.0, math.inf], [-1.0]])
def test_unusable_samples_are_refused(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="latency samples"):
        latency_stats(samples, simulated=False)
