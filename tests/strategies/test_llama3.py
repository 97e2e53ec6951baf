import math

import pytest
from longer import LENGTH, at_length, frequencies_at

from pe_cli import strategies

SIZES = {"d_model": 16, "n_heads": 1, "train_length": 128}


def test_long_waves_are_interpolated_short_ones_are_not_and_between_it_blends() -> None:
    """Wavelengths 6.3 and 19.9 are below 128 / 4, 62.8 is between, 198.7 and more are above 128."""
    found = frequencies_at({"name": "llama3", "factor": 8}, 256, **SIZES)
    plain = [10000 ** (-k / 8) for k in range(8)]
    smooth = (128 / (2 * math.pi / plain[2]) - 1) / (4 - 1)
    expected = [*plain[:2], (1 - smooth) * plain[2] / 8 + smooth * plain[2], *(theta / 8 for theta in plain[3:])]
    assert found == pytest.approx(expected)


def test_it_is_ntk_by_parts_with_other_turns() -> None:
    parts = frequencies_at("ntk_by_parts(beta=4)", 512, **SIZES)
    assert frequencies_at("llama3", 512, **SIZES) == parts


def test_a_factor_of_one_changes_nothing() -> None:
    encoding = at_length("none", "rope", LENGTH)
    assert strategies.apply("llama3(factor=1)", encoding, LENGTH, 64) is encoding
