"""Intervals: against a bootstrap written out here, against answers known by hand, and against the truth."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from pe_cli.statistics import (
    RESAMPLES,
    UNKNOWN,
    Estimate,
    each_over_windows,
    exact_sign,
    over_seeds,
    over_windows,
    power,
    seeds_needed,
    share,
    spread,
    verdict,
)

NORMAL = NormalDist()


def bias_corrected(sums: np.ndarray, counts: np.ndarray, resamples: int, seed: int) -> tuple[float, float]:
    """Efron's BCa interval of Σ sums / Σ counts, one resample at a time."""
    draw = np.random.default_rng(seed)
    n = len(sums)
    value = sums.sum() / counts.sum()
    again = np.empty(resamples)
    for i in range(resamples):
        chosen = draw.integers(n, size=n)
        again[i] = sums[chosen].sum() / counts[chosen].sum()
    bias = NORMAL.inv_cdf(float(np.mean(again < value)))
    left_out = np.array([(sums.sum() - sums[i]) / (counts.sum() - counts[i]) for i in range(n)])
    away = left_out.mean() - left_out
    acceleration = float((away**3).sum() / (6 * (away**2).sum() ** 1.5))
    ends = []
    for level in (0.025, 0.975):
        z = bias + NORMAL.inv_cdf(level)
        ends.append(float(np.quantile(again, NORMAL.cdf(bias + z / (1 - acceleration * z)))))
    return ends[0], ends[1]


@pytest.mark.parametrize("shape", ["equal", "skewed", "ragged"])
def test_windows_agree_with_a_bootstrap_written_out(shape: str) -> None:
    draw = np.random.default_rng(3)
    counts = np.full(32, 64)
    losses = draw.lognormal(0.5, 0.6, 32) if shape == "skewed" else draw.normal(2.0, 0.3, 32)
    if shape == "ragged":
        counts[-1] = 5
    sums = losses * counts
    found = over_windows(sums, counts)
    low, high = bias_corrected(sums, counts, 6000, seed=1)
    assert found.value == pytest.approx(sums.sum() / counts.sum(), rel=1e-12)
    assert found.low == pytest.approx(low, abs=0.06 * (high - low))
    assert found.high == pytest.approx(high, abs=0.06 * (high - low))


def test_a_character_counts_as_much_in_a_short_window_as_in_a_long_one() -> None:
    assert over_windows(np.array([10.0, 2.0]), np.array([10, 1])).value == pytest.approx(12 / 11)


def test_two_windows_have_the_interval_of_two_observations() -> None:
    """Means 1 and 2: standard error 1/2, and t(1) at 97.5 % is 12.7062."""
    found = over_windows(np.array([8.0, 16.0]), np.array([8, 8]))
    assert found == pytest.approx((1.5, 1.5 - 12.7062 / 2, 1.5 + 12.7062 / 2), rel=1e-5)


def test_few_windows_of_one_size_agree_with_a_t_test() -> None:
    means = np.random.default_rng(1).normal(2.0, 0.3, 9)
    interval = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    found = over_windows(means * 64, np.full(9, 64))
    assert found == pytest.approx((means.mean(), interval.low, interval.high), rel=1e-9)


@pytest.mark.parametrize("windows", [2, 3, 5, 8, 19, 20])
def test_no_number_of_windows_sees_differences_where_there_are_none(windows: int) -> None:
    """Of 400 true differences of zero at most 1 in 10 may look clear, whatever the sizes of windows."""
    draw = np.random.default_rng(windows)
    counts = draw.integers(32, 65, windows)
    found = [over_windows(draw.normal(0.0, 0.2, windows) * counts, counts) for _ in range(400)]
    assert sum(not estimate.low <= 0.0 <= estimate.high for estimate in found) <= 40


def test_equal_windows_have_an_interval_without_width() -> None:
    assert over_windows(np.array([0.6] * 5), np.array([3] * 5)) == pytest.approx((0.2, 0.2, 0.2))


def test_windows_equal_but_for_rounding_have_an_interval_that_is_a_number() -> None:
    """Leaving one out changes such a mean less than rounding does, and a bias-corrected bootstrap divides by that."""
    spread = np.array([-0.3, 0.1, 0.25, -0.05])
    differences = (2.5 + spread) - (2.0 + spread)
    assert 0 < np.ptp(differences) < 1e-15
    assert over_windows(differences * 8, np.full(4, 8)) == pytest.approx((0.5, 0.5, 0.5))


def test_one_window_has_no_interval() -> None:
    found = over_windows(np.array([6.0]), np.array([4]))
    assert found.value == 1.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_the_same_windows_give_the_same_interval() -> None:
    sums = np.random.default_rng(0).normal(100, 5, 16)
    counts = np.full(16, 64)
    first = over_windows(sums, counts)
    np.random.default_rng(9).normal(size=RESAMPLES)
    assert over_windows(sums, counts) == first


def test_intervals_over_windows_cover_the_truth_about_95_times_in_100() -> None:
    """32 windows of 64 characters; the bootstrap is known to cover a little less at this size."""
    draw = np.random.default_rng(5)
    counts = np.full(32, 64)
    trials, hits = 300, 0
    for _ in range(trials):
        found = over_windows(draw.gamma(9.0, 0.25, 32) * counts, counts)
        hits += found.low <= 9.0 * 0.25 <= found.high
    assert 0.91 <= hits / trials <= 0.98


def test_intervals_over_seeds_cover_the_truth_95_times_in_100() -> None:
    draw = np.random.default_rng(6)
    trials = 2000
    found = [over_seeds(draw.normal(2.0, 0.1, 3).tolist()) for _ in range(trials)]
    hits = sum(estimate.low <= 2.0 <= estimate.high for estimate in found)
    assert 0.935 <= hits / trials <= 0.965


def test_seeds_follow_the_table_of_student() -> None:
    """Three seeds 1, 2, 3: mean 2, standard error 1/√3, t(2) at 97.5 % is 4.302653."""
    found = over_seeds([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.high - 2.0 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert 2.0 - found.low == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)


def test_seeds_agree_with_a_t_test_of_the_mean() -> None:
    values = [2.31, 2.28, 2.35, 2.30]
    found = over_seeds(values)
    assert stats.ttest_1samp(values, found.low).pvalue == pytest.approx(0.05, abs=1e-9)
    assert stats.ttest_1samp(values, found.high).pvalue == pytest.approx(0.05, abs=1e-9)


def test_one_seed_has_no_interval() -> None:
    found = over_seeds([2.5])
    assert found.value == 2.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_equal_seeds_have_an_interval_without_width() -> None:
    assert over_seeds([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)


def test_many_rows_have_the_intervals_that_each_has_alone() -> None:
    """Among them one without any spread, whose bootstrap would have no quantiles."""
    draw = np.random.default_rng(11)
    counts = draw.integers(1, 64, 20)
    sums = draw.normal(2.0, 0.3, (5, 20)) * counts
    sums[2] = 1.5 * counts
    together = each_over_windows(sums, counts)
    for own, found in zip(sums, together, strict=True):
        assert found == pytest.approx(over_windows(own, counts), rel=1e-12)
    assert together[2] == pytest.approx((1.5, 1.5, 1.5))


def test_very_many_windows_are_joined_with_their_neighbours() -> None:
    """5000 independent windows: the interval is that of the normal distribution, and takes no memory to speak of."""
    values = np.random.default_rng(12).normal(2.0, 1.0, 5000)
    found = over_windows(values, np.ones(5000, dtype=int))
    half = NORMAL.inv_cdf(0.975) * values.std() / math.sqrt(5000)
    assert found.value == pytest.approx(values.mean(), rel=1e-12)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.08)


def test_the_verdict_is_whether_the_interval_excludes_zero() -> None:
    assert verdict(Estimate(-0.2, -0.3, -0.1)) == "better"
    assert verdict(Estimate(0.2, 0.1, 0.3)) == "worse"
    assert verdict(Estimate(0.2, -0.1, 0.5)) is None
    assert verdict(Estimate(0.2, 0.0, 0.4)) is None
    assert verdict(Estimate(1e-6, 1e-6, 1e-6)) is None  # what another batch size does
    assert verdict(UNKNOWN) is None
    assert verdict(over_seeds([0.5])) is None


def test_spread_is_the_standard_deviation_of_the_sample() -> None:
    assert spread([1.0, 2.0, 4.0]) == pytest.approx(math.sqrt(7 / 3))
    assert math.isnan(spread([1.0]))


def differences(effect: float) -> list[float]:
    """Mean `effect`, standard deviation 1."""
    return [effect - 1.0, effect, effect + 1.0]


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10), (-0.5, 34), (50.0, 2)])
def test_seeds_needed_are_those_of_the_tables_of_power(effect: float, seeds: int) -> None:
    """Two-sided paired t-test at 5 % with power 0.8: Cohen's small, medium and large effects need 199, 34, 15."""
    assert seeds_needed(differences(effect)) == seeds


def test_seeds_needed_are_unknown_where_nothing_can_be_said() -> None:
    assert seeds_needed([]) is None
    assert seeds_needed([0.3]) is None
    assert seeds_needed([0.0, 0.0]) is None
    assert seeds_needed([0.3, 0.3]) == 2
    assert seeds_needed(differences(0.001)) is None  # 7.8 million


def test_power_is_how_often_a_t_test_finds_the_difference() -> None:
    samples = np.random.default_rng(7).normal(0.9, 1.0, (4000, 8))
    hits = (stats.ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05).mean()
    assert power(0.9, 8) == pytest.approx(hits, abs=0.02)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 20, 10_000])
def test_power_is_the_integral_over_spreads_and_rises_with_the_effect(count: int) -> None:
    """Given the spread of a sample, its mean is normal; spreads follow the chi distribution."""
    effects = np.arange(0.1, 20.05, 0.1)
    found = np.array([power(effect, count) for effect in effects])
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-9).all()
    within = stats.t.ppf(0.975, count - 1)
    quantiles = (np.arange(100_000) + 0.5) / 100_000
    reach = within * stats.chi.ppf(quantiles, count - 1) / np.sqrt(count - 1)
    for effect, value in zip(effects[::20], found[::20], strict=True):
        shift = effect * np.sqrt(count)
        assert value == pytest.approx((stats.norm.cdf(shift - reach) + stats.norm.cdf(-shift - reach)).mean(), abs=1e-4)


def test_larger_effects_need_no_more_seeds() -> None:
    needed = [seeds_needed(differences(effect)) for effect in np.arange(0.1, 25, 0.05)]
    assert needed == sorted(needed, reverse=True)  # type: ignore[type-var]
    assert needed[-1] == 2


@pytest.mark.parametrize(
    ("worse", "better", "sign"),
    [(0, 0, 0), (3, 0, 0), (5, 0, 0), (6, 0, 1), (0, 6, -1), (8, 1, 1), (7, 1, 0), (9, 9, 0)],
)
def test_answers_differ_clearly_by_the_exact_test_of_mcnemar(worse: int, better: int, sign: int) -> None:
    """Five alike: 2 (1/2)^5 = 0.0625; six: 0.031; eight of nine: 20 / 512 = 0.039; seven of eight: 18 / 256 = 0.070."""
    differences = np.array([1] * worse + [-1] * better + [0] * 200)
    assert exact_sign(differences) == sign


def test_a_share_has_wilsons_interval() -> None:
    # by hand, with z = 1.959964: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)
    assert share(5, 10) == pytest.approx((0.5, 0.2365931, 0.7634069), abs=1e-6)
    assert share(20, 20) == pytest.approx((1.0, 0.8388751, 1.0), abs=1e-6)
    assert share(0, 20).low == 0
