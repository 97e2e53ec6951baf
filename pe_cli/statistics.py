"""Intervals over windows (a bootstrap, or Student's t) and over seeds (Student's t), and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np
import scipy  # its parts load at first use

CONFIDENCE = 0.95
POWER = 0.8
RESAMPLES = 2000
FEW = 20
"""From so many windows on intervals are those of a bootstrap. Of 8 windows it would leave out the truth 11 times in
100, of 3 windows 28 times."""
MOST_OBSERVATIONS = 1024
"""More windows than this are joined with their neighbours: the bootstrap takes memory by the square of their number."""
ROUNDING = 1e-5
"""A loss differs by as much when it is evaluated in other batches."""
MOST_SEEDS = 10_000
"""Nobody will train more."""


class Estimate(NamedTuple):
    """A mean with its 95 % interval; the ends are nan where one observation gives none."""

    value: float
    low: float
    high: float


UNKNOWN = Estimate(np.nan, np.nan, np.nan)


def load() -> None:
    """The parts of scipy, while there is memory: the OpenBLAS within them waits for ever where there is none."""
    for part in ("special", "stats"):
        import_module(f"scipy.{part}")


def over_windows(sums: np.ndarray, counts: np.ndarray) -> Estimate:
    """Mean per character from the sums and counts (n,) of windows, with a BCa bootstrap, or Student's t of few."""
    return each_over_windows(sums[None], counts)[0]


def each_over_windows(sums: np.ndarray, counts: np.ndarray) -> list[Estimate]:
    """The estimate of each row of sums (n, windows), all of them by the same resamples."""
    starts = np.linspace(0, len(counts), min(len(counts), MOST_OBSERVATIONS) + 1).astype(int)[:-1]
    sums, counts = np.add.reduceat(sums, starts, axis=1), np.add.reduceat(counts, starts)
    values = sums.sum(axis=1) / counts.sum()
    if len(counts) < 2:
        return [Estimate(float(value), np.nan, np.nan) for value in values]
    if len(counts) < FEW:
        return by_ratio(sums, counts)
    means = sums / counts
    equal = np.ptp(means, axis=1) <= 1e-12 * np.abs(means).max(axis=1)  # but for rounding, which has no quantiles
    low, high = values.copy(), values.copy()
    if not equal.all():

        def ratio(sums: np.ndarray, counts: np.ndarray, axis: int = -1) -> np.ndarray:
            return sums.sum(axis=axis) / counts.sum(axis=axis)

        different = sums[~equal]
        result = scipy.stats.bootstrap(
            (different, np.broadcast_to(counts.astype(float), different.shape)),
            ratio,
            paired=True,
            vectorized=True,
            axis=-1,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="BCa",
            rng=np.random.default_rng(0),  # the same windows give the same interval
        )
        low[~equal], high[~equal] = result.confidence_interval
    return [Estimate(*map(float, ends)) for ends in zip(values, low, high, strict=True)]


def by_ratio(sums: np.ndarray, counts: np.ndarray) -> list[Estimate]:
    """Σ sums / Σ counts of each row of sums (n, windows), with Student's t and the standard error of a ratio.

    Cochran 1977, Sampling Techniques, equation 6.13: that of the windows' deviations from the common ratio.
    """
    windows, values = len(counts), sums.sum(axis=1) / counts.sum()
    deviations = sums - values[:, None] * counts
    errors = np.sqrt(windows / (windows - 1) * (deviations**2).sum(axis=1)) / counts.sum()
    halves = errors * quantile(windows)
    return [Estimate(*map(float, ends)) for ends in zip(values, values - halves, values + halves, strict=True)]


def exact_sign(differences: np.ndarray) -> int:
    """The sign of differences of −1, 0 and 1 where it is clear: McNemar's exact test, since so few decide."""
    worse, better = int((differences > 0).sum()), int((differences < 0).sum())
    if worse == better or scipy.stats.binomtest(worse, worse + better).pvalue >= 1 - CONFIDENCE:
        return 0
    return 1 if worse > better else -1


def over_seeds(values: Sequence[float]) -> Estimate:
    """Mean over seeds with the interval of Student's t."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, np.nan, np.nan)
    half = spread(values) / math.sqrt(len(values)) * quantile(len(values))
    return Estimate(mean, mean - half, mean + half)


def quantile(count: int) -> float:
    """How many standard errors an interval of Student's t reaches from the mean of `count` observations."""
    return float(scipy.special.stdtrit(count - 1, (1 + CONFIDENCE) / 2))


def spread(values: Sequence[float]) -> float:
    """The standard deviation over seeds; nan for fewer than two."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def verdict(difference: Estimate) -> str | None:
    """`better` or `worse` where the interval of a difference of losses excludes zero, and not by rounding alone."""
    if difference.high < -ROUNDING:
        return "better"
    return "worse" if difference.low > ROUNDING else None


def seeds_needed(differences: Sequence[float]) -> int | None:
    """How many seeds a paired t-test would need to find a mean difference of this size in 80 of 100 experiments.

    Size and spread are taken as observed, and those of few seeds are rough. None where fewer than two were
    observed, where there is no difference, and for more than MOST_SEEDS.
    """
    deviation, mean = spread(differences), float(np.mean(differences)) if len(differences) else 0.0
    if math.isnan(deviation) or abs(mean) <= ROUNDING:
        return None
    # beyond 20 standard deviations two seeds do, and scipy no longer computes the power
    effect = min(20.0, abs(mean) / deviation) if deviation > 0 else 20.0
    enough, few = 2, 1
    while power(effect, enough) < POWER:
        enough, few = 2 * enough, enough
        if few >= MOST_SEEDS:
            return None
    while enough - few > 1:
        middle = (enough + few) // 2
        few, enough = (few, middle) if power(effect, middle) >= POWER else (middle, enough)
    return enough if enough <= MOST_SEEDS else None


def power(effect: float, count: int) -> float:
    """How likely a two-sided paired t-test of `count` pairs finds a mean of `effect` standard deviations."""
    # the square of t, since scipy's noncentral t is nan here and there where the effect is large
    return float(scipy.stats.ncf.sf(quantile(count) ** 2, 1, count - 1, effect**2 * count))


def share(successes: int, count: int) -> Estimate:
    """A share of independent trials with Wilson's interval, which has a width even where all or none succeed."""
    interval = scipy.stats.binomtest(successes, count).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(successes / count, float(interval.low), float(interval.high))
