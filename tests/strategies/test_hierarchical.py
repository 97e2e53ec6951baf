import pytest
import torch
from longer import added, at_length, random_table, rows_at

from pe_cli import strategies
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused


def test_two_rows_make_four() -> None:
    """By hand, with alpha 0.4: u0 = e0, u1 = (e1 - 0.4 e0) / 0.6 = (5 - 0.4) / 0.6 = 23/3 for e = (1, 5)."""
    found = rows_at("hierarchical", torch.tensor([[1.0], [5.0]], dtype=torch.float64), 4)[:, 0]
    u1 = 23 / 3
    expected = [1.0, 5.0, 0.4 * u1 + 0.6, u1]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_the_first_rows_are_the_trained_ones_bit_by_bit() -> None:
    table = random_table()
    assert torch.equal(rows_at("hierarchical", table, 50)[:8], table)


def test_it_ends_at_the_square_of_the_trained_length() -> None:
    assert len(added(at_length("hierarchical", "learned", 64), 64)) == 64
    with pytest.raises(PositionRangeError, match=r"the extended table has 64 rows, .* asks for id 64"):
        added(at_length("hierarchical", "learned", 65), 65)


def test_it_serves_a_function_of_the_id() -> None:
    found = added(at_length("hierarchical", "sinusoidal", 20), 20)
    trained = added(at_length("none", "sinusoidal", 8), 8)
    assert torch.equal(found[:8], trained)
    torch.testing.assert_close(found[8], 0.4 * (trained[1] - 0.4 * trained[0]) / 0.6 + 0.6 * trained[0])


def test_refused() -> None:
    with pytest.raises(StrategyRefused, match="hierarchical has no meaning for tupe: it extends a table"):
        at_length("hierarchical", "tupe", 16)
    with pytest.raises(ConfigError, match=r"alpha: must be less than 0\.5, not 0\.5 \(of hierarchical\)"):
        strategies.canonical_block("hierarchical(alpha=0.5)")
