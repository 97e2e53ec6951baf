import math

import pytest
from longer import LENGTH, at_length, frequencies_at

from pe_cli import strategies
from pe_cli.errors import ConfigError, StrategyRefused

SIZES = {"d_model": 16, "n_heads": 1, "train_length": 128}


def test_each_pair_by_hand() -> None:
    """128 ids, turns 20.4, 6.44, 2.04, 0.64 … : with beta 8, γ is 1, 5.44 / 7, 1.04 / 7, 0 …"""
    found = frequencies_at({"name": "ntk_by_parts", "beta": 8}, 512, **SIZES)
    plain = [10000 ** (-k / 8) for k in range(8)]
    shares = [1, (128 * plain[1] / (2 * math.pi) - 1) / 7, (128 * plain[2] / (2 * math.pi) - 1) / 7, 0, 0, 0, 0, 0]
    expected = [(1 - share) * theta / 4 + share * theta for share, theta in zip(shares, plain, strict=True)]
    assert found == pytest.approx(expected)


def test_by_default_beta_is_half_way_to_the_fastest_pair_and_at_most_that_of_the_paper() -> None:
    for length, beta in ((128, math.sqrt(128 / (2 * math.pi))), (8192, 32)):
        sizes = {**SIZES, "train_length": length}
        stated = frequencies_at({"name": "ntk_by_parts", "beta": beta}, 4 * length, **sizes)
        assert frequencies_at("ntk_by_parts", 4 * length, **sizes) == pytest.approx(stated)
    assert math.sqrt(128 / (2 * math.pi)) == pytest.approx(4.51, abs=0.01)


def test_refused() -> None:
    with pytest.raises(ConfigError, match="alpha and beta: the first must be below the second, not 4 and 2"):
        strategies.canonical_block("ntk_by_parts(alpha=4, beta=2)")
    with pytest.raises(StrategyRefused, match="it changes the frequencies of a rotation"):
        at_length("ntk_by_parts", "t5", 16)


def test_a_factor_of_one_changes_nothing() -> None:
    encoding = at_length("none", "rope", LENGTH)
    assert strategies.apply("ntk_by_parts(factor=1)", encoding, LENGTH, 64) is encoding
