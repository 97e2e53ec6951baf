import pytest
from longer import LENGTH, at_length, frequencies_at

from pe_cli import strategies
from pe_cli.errors import StrategyRefused

HEAD = {"d_model": 8, "n_heads": 1}


def test_the_fastest_pair_stays_and_the_slowest_is_slowed_down_by_the_factor() -> None:
    """Four pairs, 1, 0.1, 0.01, 0.001: at four times the length the base grows by 4^(8/6)."""
    found = frequencies_at("ntk", 4 * LENGTH, **HEAD)
    base = 10000 * 4 ** (8 / 6)
    assert found == pytest.approx([base ** (-2 * k / 8) for k in range(4)])
    assert (found[0], found[-1]) == (1, pytest.approx(0.001 / 4))


def test_pairs_that_do_not_turn_do_not_count() -> None:
    """p_rope keeps 1, 0.1 and 0.01 of four: the last of them is slowed down by the whole factor."""
    assert frequencies_at("ntk", 32, "p_rope", **HEAD) == pytest.approx([1, 0.1 / 2, 0.01 / 4, 0])


def test_a_factor_of_one_changes_nothing() -> None:
    encoding = at_length("none", "rope", LENGTH)
    assert strategies.apply("ntk(factor=1)", encoding, LENGTH, 64) is encoding


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("alibi", "it changes the frequencies of a rotation"),
        ("sinusoidal", "it changes the frequencies of a rotation"),
        ("none", "it uses no ids"),
        ("bipe", "its ids are read from the text"),
    ],
)
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"ntk has no meaning for {name}: {why}"):
        at_length("ntk", name, 16)


def test_refused_with_one_pair() -> None:
    with pytest.raises(StrategyRefused, match="it turns one pair of columns"):
        at_length("ntk", "rope", 16, d_model=2, n_heads=1)


@pytest.mark.parametrize(("d_head", "base"), [(16, 107672.015), (4, 640000.0)])
def test_the_base_at_a_factor_of_eight(d_head: int, base: float) -> None:
    """10000 · 8^(d / (d − 2)): the exponent is 16/14 or 4/2."""
    found = frequencies_at("ntk(factor=8)", 64, d_model=d_head, n_heads=1)
    assert found[1] ** (-d_head / 2) == pytest.approx(base, rel=1e-6)
