"""ALiBi: the slopes of the paper, and a bias that falls with distance."""

from __future__ import annotations

import pytest
import torch
from driving import at, bias, block_of, built, layer_of, random_layer, sequential_bias, with_parameters
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pe_cli.encodings.base import Sees
from pe_cli.errors import ConfigError

LEARNED = {"name": "alibi", "slopes": "learned"}


def slopes(n_heads: int, **options: float) -> Tensor:
    return built({"name": "alibi", **options}, d_model=2 * n_heads, n_heads=n_heads).numbers(1)["slopes"]


@pytest.mark.parametrize(
    ("n_heads", "expected"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (8, [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8]),
        (12, [2**-exponent for exponent in (1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5)]),
    ],
)
def test_slopes(n_heads: int, expected: list[float]) -> None:
    torch.testing.assert_close(slopes(n_heads), torch.tensor(expected, dtype=torch.float64), atol=0, rtol=1e-7)


@given(n_heads=st.integers(1, 64))
def test_slopes_are_distinct_and_between_zero_and_one(n_heads: int) -> None:
    values = slopes(n_heads).tolist()
    assert len(set(values)) == n_heads
    assert all(0 < value < 1 for value in values)


def test_max_exponent_sets_the_last_slope() -> None:
    assert slopes(4, max_exponent=4.0).tolist() == [2**-1, 2**-2, 2**-3, 2**-4]


def test_row_i_is_slope_times_j_minus_i() -> None:
    ours = sequential_bias(built("alibi"), 5)
    assert ours[0, 4].tolist() == [-1.0, -0.75, -0.5, -0.25, 0.0]
    assert ours[3, 4].tolist() == [-4 / 256, -3 / 256, -2 / 256, -1 / 256, 0.0]


def test_neighbours_stay_apart_at_4096() -> None:
    nothing = torch.zeros(4, 4096, 8)
    encoding = built("alibi", dtype=torch.float32)
    row = encoding.dense_bias(block_of(encoding, layer_of(nothing, nothing), slice(4095, 4096)))
    assert row is not None
    assert row.dtype == torch.float32
    steps = (row[..., 1:] - row[..., :-1])[0, :, 0]
    assert torch.equal(steps, slopes(4).float()[:, None].expand_as(steps))


def test_fractional_and_repeated_ids() -> None:
    ours = bias(built("alibi"), random_layer(3).at(at([0, 0, 2.5])))
    assert ours[0, 0, 2].tolist() == [-0.625, -0.625, 0.0]
    assert ours[0, 0, 1, 0].item() == 0


def test_nothing_is_saved() -> None:
    assert not built("alibi").state_dict()


# --- learned slopes


@pytest.mark.parametrize("n_heads", [1, 4, 6])
def test_learned_slopes_start_at_the_fixed_ones(n_heads: int) -> None:
    encoding = built(LEARNED | {"max_exponent": 6.0}, d_model=2 * n_heads, n_heads=n_heads)
    expected = slopes(n_heads, max_exponent=6.0)
    torch.testing.assert_close(encoding.numbers(1)["slopes"], expected, rtol=1e-6, atol=0)
    fixed = built({"name": "alibi", "max_exponent": 6.0}, d_model=2 * n_heads, n_heads=n_heads)
    ours, theirs = (sequential_bias(e, 9).tril() for e in (encoding, fixed))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)


def test_one_learned_slope_for_each_head_of_all_layers() -> None:
    encoding = built(LEARNED, n_layers=6, n_heads=4)
    assert {name: tuple(value.shape) for name, value in encoding.state_dict().items()} == {"log_slopes": (4,)}
    assert encoding.sees is Sees.DISTANCE


def test_a_learned_slope_is_shown_and_used_and_stays_above_zero() -> None:
    logarithms = torch.tensor([0.5, -1.0, -3.0, -50.0], dtype=torch.float64)
    encoding = with_parameters(built(LEARNED), log_slopes=logarithms)
    assert (encoding.numbers(1)["slopes"] > 0).all()
    torch.testing.assert_close(encoding.numbers(1)["slopes"], logarithms.exp())
    torch.testing.assert_close(sequential_bias(encoding, 6)[:, 5, 1], -4 * logarithms.exp())


def test_the_gradient_of_a_learned_slope() -> None:
    """By the logarithm of a slope m the bias −m n changes as −m n."""
    encoding = built(LEARNED)
    sequential_bias(encoding, 4)[:, 3].sum().backward()
    gradient = encoding.get_parameter("log_slopes").grad
    assert gradient is not None
    torch.testing.assert_close(gradient, -6 * slopes(4), rtol=1e-6, atol=0)


def test_only_fixed_or_learned() -> None:
    with pytest.raises(ConfigError, match="slopes"):
        built({"name": "alibi", "slopes": "free"})
