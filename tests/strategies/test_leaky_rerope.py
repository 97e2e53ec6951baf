import pytest
import torch
from distances_seen import distances
from longer import at_length

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import StrategyRefused


def changed(options: str, length: int) -> torch.Tensor:
    def change(encoding: PositionEncoding) -> PositionEncoding:
        return strategies.apply(f"leaky_rerope(log_n=false{options})", encoding, 8, length)

    return distances(change, length)


def test_distances_grow_more_slowly_from_the_window_on() -> None:
    found = changed(", window=3, stretch=4", 12)[-1].flip(0)
    torch.testing.assert_close(
        found, torch.tensor([0, 1, 2, *(3 + n / 4 for n in range(9))]).double(), atol=1e-5, rtol=0
    )


def test_by_default_the_last_distance_is_the_last_trained_one() -> None:
    for length in (9, 16, 40):
        found = changed("", length)[-1].flip(0)
        torch.testing.assert_close(found[:5], torch.arange(5).double(), atol=1e-5, rtol=0)
        assert float(found[-1]) == pytest.approx(7, abs=1e-5)


def test_refused() -> None:
    for name in ("alibi", "fope", "none", "bipe"):
        with pytest.raises(StrategyRefused, match=f"leaky_rerope has no meaning for {name}"):
            at_length("leaky_rerope", name, 16)
