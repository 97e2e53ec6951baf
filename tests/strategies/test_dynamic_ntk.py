import pytest
from longer import LENGTH, at_length, frequencies_at

from pe_cli import strategies


def test_the_base_follows_the_length() -> None:
    """At twice the length 2 · 2 − 1 = 3, at four times 2 · 4 − 1 = 7."""
    for length, factor in ((2 * LENGTH, 3), (4 * LENGTH, 7)):
        found = frequencies_at("dynamic_ntk", length)
        assert found == pytest.approx(frequencies_at({"name": "ntk", "factor": factor}, length))


def test_with_growth_one_it_is_ntk_and_with_none_it_changes_nothing() -> None:
    assert frequencies_at("dynamic_ntk(growth=1)", 24) == pytest.approx(frequencies_at("ntk", 24))
    encoding = at_length("none", "rope", LENGTH)
    assert strategies.apply("dynamic_ntk(growth=0)", encoding, LENGTH, 64) is encoding


def test_a_shorter_text_after_a_longer_one_has_its_own_base() -> None:
    encoding = at_length("none", "rope", LENGTH)
    first, _, again = (
        strategies.apply("dynamic_ntk", encoding, LENGTH, n).numbers(n)["inverse_frequencies"] for n in (16, 64, 16)
    )
    assert first.tolist() == again.tolist()
