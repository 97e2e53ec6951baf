"""Partial RoPE: the first columns turn, with the frequencies of that many columns; the others stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from driving import at, built, logits, random_layer

from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.errors import ConfigError

LAYOUTS = ("halves", "interleaved")


def partial(fraction: float, layout: str = "halves", **sizes: Any) -> PositionEncoding:
    return built({"name": "rope_partial", "fraction": fraction, "layout": layout}, **sizes)


def test_a_quarter_of_a_head_of_32_has_the_frequencies_of_8_columns() -> None:
    numbers = built("rope_partial", d_model=32, n_heads=1).numbers(1)
    assert numbers["inverse_frequencies"].tolist() == pytest.approx([1, 0.1, 0.01, 0.001], rel=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_first_columns_are_a_narrow_rope_and_the_others_stay(layout: str) -> None:
    layer = random_layer(5).at(at([0, 3, 4, 4.5, 700]))
    turned = partial(0.5, layout).rotate(layer)
    narrow = replace(layer, q=layer.q[..., :4], k=layer.k[..., :4])
    alone = built({"name": "rope", "layout": layout}, d_model=16).rotate(narrow)
    for before, ours, expected in zip((layer.q, layer.k), turned, alone, strict=True):
        assert torch.equal(ours[..., :4], expected)
        assert torch.equal(ours[..., 4:], before[..., 4:])
        assert (ours - before)[:, :, 1:, :4].abs().amin() > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_whole_is_rope_and_nothing_is_no_encoding(layout: str) -> None:
    layer = random_layer(5)
    assert torch.equal(logits(partial(1, layout), layer), logits(built({"name": "rope", "layout": layout}), layer))
    assert torch.equal(logits(partial(0, layout), layer), logits(built("none"), layer))
    assert (partial(1).sees, partial(0).sees) == (Sees.DISTANCE, Sees.NOTHING)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_logits_survive_a_shift(layout: str) -> None:
    layer = random_layer(8)
    moved = layer.at(at(layer.positions.ids[0] + 1234))
    torch.testing.assert_close(
        logits(partial(0.5, layout), moved), logits(partial(0.5, layout), layer), atol=1e-10, rtol=0
    )


def test_a_third_may_be_written_with_six_digits() -> None:
    encoding = partial(0.333333, d_model=24, n_heads=1)
    assert len(encoding.numbers(1)["inverse_frequencies"]) == 4


@pytest.mark.parametrize(
    ("fraction", "d_model", "n_heads", "message"),
    [
        (0.75, 16, 4, r"fraction: 0.75 of the 4 columns of a head is 3, .* 0.5 or 1 would do"),
        (0.25, 16, 4, r"is 1, .* in pairs; 0.5 would do"),
        (0.25, 12, 4, r"is 0, .* 0.666667 would do"),
        (0.5, 3, 3, r"heads of two columns or more would do"),
        (1, 15, 5, r"encoding: model.d_model 15 .* 10 or 20 would do"),
    ],
)
def test_columns_that_form_no_pairs_are_refused(fraction: float, d_model: int, n_heads: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        partial(fraction, d_model=d_model, n_heads=n_heads)


def test_the_advice_is_good() -> None:
    for fraction, d_model, n_heads in ((0.5, 16, 4), (1, 16, 4), (0.666667, 12, 4), (1, 10, 5), (1, 20, 5)):
        partial(fraction, d_model=d_model, n_heads=n_heads)


@pytest.mark.parametrize("fraction", [-0.1, 1.01, "half"])
def test_a_fraction_is_between_zero_and_one(fraction: float) -> None:
    with pytest.raises(ConfigError, match=r"encoding\.fraction: must be .* \(of rope_partial\)"):
        partial(fraction)
