from fractions import Fraction

import pytest
from longer import at_length, ids_at

from pe_cli.errors import StrategyRefused


def test_groups_share_an_id() -> None:
    assert ids_at("nearest", 16) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    assert ids_at("nearest", 12) == [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]


def test_ids_are_rounded_down_exactly() -> None:
    for length in range(9, 200):
        assert ids_at("nearest", length) == [Fraction(8 * p, length).__floor__() for p in range(length)]


@pytest.mark.parametrize("name", ["t5", "shaw", "rope", "anchored"])
def test_it_serves_encodings_that_know_only_whole_ids_or_distances(name: str) -> None:
    assert ids_at("nearest", 16, name)[-1] == 7


def test_refused_without_ids() -> None:
    with pytest.raises(StrategyRefused, match="nearest has no meaning for none: it uses no ids"):
        at_length("nearest", "none", 16)
