import pytest
import torch
from distances_seen import distances
from longer import at_length

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import StrategyRefused


def changed(strategy: str, length: int, trained: int = 8) -> torch.Tensor:
    def change(encoding: PositionEncoding) -> PositionEncoding:
        return strategies.apply(strategy, encoding, trained, length)

    return distances(change, length)


def test_near_ones_one_by_one_and_far_ones_in_groups() -> None:
    """W = 4, G = 2: query 11 is in group 5, keys 7, 6 | 5, 4 | … in groups 3 | 2 | …, and 4 − 4 / 2 = 2 is added."""
    found = changed("self_extend(window=4, group=2)", 12)[11]
    expected = torch.tensor([7, 7, 6, 6, 5, 5, 4, 4, 3, 2, 1, 0]).double()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_by_default_all_distances_are_trained_ones() -> None:
    for length in (9, 16, 31, 48):
        found = changed("self_extend", length)
        assert float(found[~found.isnan()].max()) < 7 + 1e-5


@pytest.mark.parametrize(
    ("window", "trained", "length", "group"), [(2, 8, 16, 3), (4, 8, 64, 16), (8, 32, 128, 6), (7, 8, 9, 3)]
)
def test_the_group_is_the_smallest_that_does(window: int, trained: int, length: int, group: int) -> None:
    """The farthest pair is at a trained distance, and in any smaller groups it would not be."""

    def found(group: str) -> torch.Tensor:
        return changed(f"self_extend(window={window}, group={group})", length, trained).nan_to_num(0).round()

    assert torch.equal(found("none"), found(str(group)))
    assert found("none").max() < trained
    for smaller in range(1, group):
        assert found(str(smaller)).max() >= trained


def test_refused() -> None:
    for name in ("alibi", "fope", "none", "bipe"):
        with pytest.raises(StrategyRefused, match=f"self_extend has no meaning for {name}"):
            at_length("self_extend", name, 16)
