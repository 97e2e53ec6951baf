import pytest
import torch
from distances_seen import distances
from longer import at_length

from pe_cli import strategies
from pe_cli.errors import StrategyRefused


def test_the_first_characters_at_one_distance_and_the_last_at_their_own() -> None:
    strategy = "lm_infinite(first=2, window=4, distance=6)"
    found = distances(lambda encoding: strategies.apply(strategy, encoding, 4, 10), 10)[9]
    nan = float("nan")
    expected = torch.tensor([6, 6, nan, nan, nan, nan, 3, 2, 1, 0]).double()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0, equal_nan=True)


def test_refused() -> None:
    with pytest.raises(StrategyRefused, match="lm_infinite has no meaning for alibi"):
        at_length("lm_infinite", "alibi", 16)
