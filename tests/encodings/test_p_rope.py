"""p-RoPE: the frequencies of the whole head, the lowest of them zero."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, built, logits, random_layer
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.errors import ConfigError

LAYOUTS = ("halves", "interleaved")


def p_rope(p: float, layout: str = "halves", **sizes: Any) -> PositionEncoding:
    return built({"name": "p_rope", "p": p, "layout": layout}, **sizes)


def frequencies(p: float, **sizes: Any) -> list[float]:
    return p_rope(p, **sizes).numbers(1)["inverse_frequencies"].tolist()


def test_three_quarters_of_the_frequencies_are_those_of_rope() -> None:
    assert built("p_rope").numbers(1)["inverse_frequencies"].tolist() == pytest.approx([1, 0.1, 0.01, 0], rel=1e-14)
    assert built("p_rope").numbers(1)["wavelengths"].tolist()[3] == math.inf


def test_it_is_not_partial_rope() -> None:
    """Half of a head of 8: the fast end of its own waves, against all of the waves in half of the pairs."""
    assert frequencies(0.5) == pytest.approx([1, 0.1, 0, 0])
    partial = built({"name": "rope_partial", "fraction": 0.5}).numbers(1)["inverse_frequencies"].tolist()
    assert partial == pytest.approx([1, 0.01])


def test_no_frequency_is_lost_to_rounding() -> None:
    """In floats 0.29 × 100 is below 29, and a third of twelve may be written 0.33333."""
    for d_head, p, kept in ((200, 0.29, 29), (200, 0.57, 57), (24, 0.33333, 4), (24, 0.3333, 3)):
        assert sum(f > 0 for f in frequencies(p, n_heads=1, d_model=d_head)) == kept


@pytest.mark.parametrize(("p", "kept"), [(0.0, 0), (0.12, 0), (0.25, 1), (0.49, 1), (0.75, 3), (0.99, 3), (1.0, 4)])
def test_the_share_is_rounded_down(p: float, kept: int) -> None:
    assert sum(frequency > 0 for frequency in frequencies(p)) == kept


def content(x: Tensor, layout: str) -> Tensor:
    """The columns of the last pair of four, which p = 0.75 leaves alone."""
    return x[..., [3, 7]] if layout == "halves" else x[..., [6, 7]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pair_of_frequency_zero_is_not_touched(layout: str) -> None:
    layer = random_layer(5).at(at([0, 7, 8, 8.5, 3999]))
    whole, _ = built({"name": "rope", "layout": layout}).rotate(layer)
    ours, _ = p_rope(0.75, layout).rotate(layer)
    assert torch.equal(content(ours, layout), content(layer.q, layout))
    assert not torch.equal(content(whole, layout), content(layer.q, layout))
    assert (ours == whole).sum() == (ours.numel() // 8) * 6 + ours[:, :, :1].numel() // 8 * 2  # all else, and id 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_ends_are_rope_and_no_encoding(layout: str) -> None:
    layer = random_layer(6)
    assert torch.equal(logits(p_rope(1, layout), layer), logits(built({"name": "rope", "layout": layout}), layer))
    torch.testing.assert_close(logits(p_rope(0, layout), layer), logits(built("none"), layer), atol=0, rtol=0)
    assert (p_rope(0.25).sees, p_rope(0).sees) == (Sees.DISTANCE, Sees.NOTHING)


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_a_share_is_between_zero_and_one(p: float) -> None:
    with pytest.raises(ConfigError, match=r"encoding\.p: must be .* \(of p_rope\)"):
        p_rope(p)


def test_odd_heads_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"encoding: model.d_model 15 .* 10 or 20 would do"):
        p_rope(0.75, d_model=15, n_heads=5)
