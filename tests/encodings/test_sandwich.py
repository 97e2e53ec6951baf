"""Sandwich: products of sinusoidal embeddings, which depend on the distance alone."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from driving import at, bias, built, layer_of, random_layer, sequential_bias
from torch import Tensor

from pe_cli.errors import ConfigError


def embedding(position: float, width: int, base: float = 10000.0) -> list[float]:
    """Sine and cosine of the frequencies b^(−2k / D), k = 1 … D/2, of one id."""
    angles = [position * base ** (-2 * k / width) for k in range(1, width // 2 + 1)]
    return [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]


def product(first: list[float], second: list[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("width", [2, 64, 128])
def test_it_is_the_product_of_two_embeddings_less_their_largest(width: int) -> None:
    ids = [0, 1, 2.5, 40, 41, 5000]
    ours = bias(built({"name": "sandwich", "dimensions": width}), random_layer(6).at(at(ids)))
    table = [embedding(position, width) for position in ids]
    for i in range(6):
        for j in range(i + 1):
            fall = product(table[i], table[j]) - width / 2
            for head, compression in enumerate([2, 4, 6, 8]):
                assert ours[0, head, i, j].item() == pytest.approx(fall / compression, abs=1e-9)


def test_a_row_worked_by_hand() -> None:
    """Two columns make one cosine, of frequency 1/10000; with base 1, of frequency 1."""
    row = sequential_bias(built({"name": "sandwich", "dimensions": 2, "base": 1}, n_heads=1), 3)[0, 2]
    expected = torch.tensor([math.cos(2) - 1, math.cos(1) - 1, 0], dtype=torch.float64) / 8
    torch.testing.assert_close(row, expected, atol=1e-12, rtol=0)
    slow = sequential_bias(built({"name": "sandwich", "dimensions": 2}, n_heads=1), 2)[0, 1, 0]
    assert slow.item() == pytest.approx((math.cos(1e-4) - 1) / 8, rel=1e-6)


@pytest.mark.parametrize(("heads", "expected"), [(1, [8]), (4, [2, 4, 6, 8]), (6, [8 * h / 6 for h in range(1, 7)])])
def test_compressions_rise_evenly_to_eight(heads: int, expected: list[float]) -> None:
    numbers = built("sandwich", d_model=4 * heads, n_heads=heads).numbers(1)
    assert numbers["compressions"].tolist() == pytest.approx(expected)


def test_never_above_zero_and_steepest_in_the_first_head() -> None:
    ours = sequential_bias(built("sandwich"), 300)[:, -1]
    assert ours[:, -1].tolist() == [0, 0, 0, 0]
    assert (ours[:, :-1] < 0).all()
    torch.testing.assert_close(ours[0], 4 * ours[3])


def test_it_falls_about_as_the_logarithm() -> None:
    """Over each doubling of the distance the mean of the bias falls by about as much."""
    row = sequential_bias(built("sandwich"), 1025)[3, -1].flip(0)
    means = [row[n : 2 * n].mean().item() for n in (8, 16, 32, 64, 128, 256, 512)]
    steps = [before - after for before, after in pairwise(means)]
    assert all(0.25 < step < 0.65 for step in steps), steps


def test_128_cosine_columns_for_heads_of_any_size() -> None:
    small, large = (sequential_bias(built("sandwich", d_model=width), 20).tril() for width in (8, 512))
    assert torch.equal(small, large)
    assert len(built("sandwich").numbers(1)["wavelengths"]) == 64


def test_the_waves_run_from_the_second_sinusoidal_frequency_to_the_base() -> None:
    waves = built("sandwich").numbers(1)["wavelengths"]
    assert waves[0].item() == pytest.approx(2 * math.pi * 10000 ** (1 / 64))
    assert waves[-1].item() == pytest.approx(2 * math.pi * 10000)


def test_float32_biases_are_exact_at_far_ids() -> None:
    """Angles in float32 would be off by 1e-3 at distance 10000, and the sum by more."""

    def far(dtype: torch.dtype) -> Tensor:
        nothing = torch.zeros(4, 2, 8, dtype=dtype)
        return bias(built("sandwich", dtype), layer_of(nothing, nothing, ids=[0, 99_991]))[0, :, 1, 0]

    assert far(torch.float32).dtype == torch.float32
    torch.testing.assert_close(far(torch.float32).double(), far(torch.float64), atol=1e-5, rtol=0)


def test_nothing_is_saved_and_nothing_is_trained() -> None:
    assert not built("sandwich").state_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"dimensions": 7}, "dimensions"), ({"dimensions": 0}, "dimensions"), ({"base": 0.5}, "base")],
)
def test_options_that_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "sandwich", **options})
