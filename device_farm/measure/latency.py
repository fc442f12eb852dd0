"""Latency statistics from raw samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.contracts.runs import LatencyStats


def latency_stats(samples_us: Sequence[float], *, simulated: bool) -> LatencyStats:
    """Statistics of the samples; percentiles are interpolated linearly between samples.

    Raises:
        ValueError: there is no sample, or one is negative or not finite.
    """
    samples = np.asarray(samples_us, dtype=np.float64)
    if samples.size == 0:
        raise ValueError("no latency samples")
    if not np.isfinite(samples).all() or samples.min() < 0:
        raise ValueError("latency samples must be finite and not negative")
    median, p90, p99 = np.percentile(samples, (50, 90, 99))
    return LatencyStats(
        count=samples.size,
        min_us=float(samples.min()),
        median_us=float(median),
        mean_us=float(samples.mean()),
        p90_us=float(p90),
        p99_us=float(p99),
        max_us=float(samples.max()),
        mad_us=float(np.median(np.abs(samples - median))),
        simulated=simulated,
    )
