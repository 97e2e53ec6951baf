"""Intervals: over windows by the bootstrap, over seeds by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 2000


class Estimate(NamedTuple):
    """A mean with its 95 % interval; the ends are nan where one observation gives none."""

    value: float
    low: float
    high: float


UNKNOWN = Estimate(np.nan, np.nan, np.nan)


def over_windows(sums: np.ndarray, counts: np.ndarray) -> Estimate:
    """Mean per character from the sums and counts of windows, with a bias-corrected bootstrap over windows."""
    value = float(sums.sum() / counts.sum())
    means = sums / counts
    if len(sums) < 2:
        return Estimate(value, np.nan, np.nan)
    if np.ptp(means) <= 1e-12 * np.abs(means).max():  # equal but for rounding, which has no quantiles
        return Estimate(value, value, value)

    def ratio(sums: np.ndarray, counts: np.ndarray, axis: int = -1) -> np.ndarray:
        return sums.sum(axis=axis) / counts.sum(axis=axis)

    result = stats.bootstrap(
        (sums, counts.astype(float)),
        ratio,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="BCa",
        rng=np.random.default_rng(0),  # the same windows give the same interval
    )
    return Estimate(value, float(result.confidence_interval.low), float(result.confidence_interval.high))


def over_seeds(values: Sequence[float]) -> Estimate:
    """Mean over seeds with the interval of Student's t."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, np.nan, np.nan)
    half = float(stats.sem(values) * stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return Estimate(mean, mean - half, mean + half)
