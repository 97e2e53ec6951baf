"""HoPE: only waves that complete a turn in the training length are left."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, built, logits, random_layer

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError


def hope(length: int, base: float = 1e4, **sizes: Any) -> PositionEncoding:
    return built({"name": "hope", "base": base}, train_length=length, **sizes)


@pytest.mark.parametrize(
    ("base", "d_head", "length", "slow"),
    [(1e4, 32, 128, 10), (1e4, 32, 256, 9), (1e4, 64, 256, 19), (5e5, 64, 128, 24)],
)
def test_the_pairs_of_rope_that_complete_no_turn_are_zero(base: float, d_head: int, length: int, slow: int) -> None:
    ours = hope(length, base, d_model=d_head, n_heads=1).numbers(1)["inverse_frequencies"]
    rope = built({"name": "rope", "base": base}, d_model=d_head, n_heads=1).numbers(1)["inverse_frequencies"]
    fast = d_head // 2 - slow
    assert torch.equal(ours[:fast], rope[:fast])
    assert ours[fast:].tolist() == [0] * slow


def test_a_wave_of_just_the_training_length_stays() -> None:
    """Waves of a head of 8 with base 16: 2π, 4π, 8π and 16π ids; 4π = 12.57, 8π = 25.13, 16π = 50.27."""
    assert hope(12, 16).numbers(1)["inverse_frequencies"].tolist() == [1, 0, 0, 0]
    assert hope(13, 16).numbers(1)["inverse_frequencies"].tolist() == [1, 0.5, 0, 0]
    assert hope(50, 16).numbers(1)["inverse_frequencies"].tolist() == [1, 0.5, 0.25, 0]
    assert hope(51, 16).numbers(1)["inverse_frequencies"].tolist() == [1, 0.5, 0.25, 0.125]


def test_slow_pairs_depend_on_the_content_alone() -> None:
    layer = random_layer(5).at(at([0, 1, 2.5, 40, 4000]))
    q, k = hope(128).rotate(layer)  # of 1, 0.1, 0.01 and 0.001 the first two are left
    assert torch.equal(q[..., [2, 3, 6, 7]], layer.q[..., [2, 3, 6, 7]])
    assert torch.equal(k[..., [2, 3, 6, 7]], layer.k[..., [2, 3, 6, 7]])


def test_logits_are_the_fast_turns_plus_the_plain_product() -> None:
    layer = random_layer(6)
    ours = logits(hope(128), layer)
    for i in range(6):
        for j in range(i + 1):
            q, k = layer.q[1, 2, i], layer.k[1, 2, j]
            total = sum(float(q[column] * k[column]) for column in (2, 3, 6, 7))
            for pair, theta in ((0, 1.0), (1, 0.1)):
                product = complex(q[pair], q[pair + 4]) * complex(k[pair], k[pair + 4]).conjugate()
                angle = (i - j) * theta
                total += product.real * math.cos(angle) - product.imag * math.sin(angle)
            assert ours[1, 2, i, j].item() == pytest.approx(total / math.sqrt(8), abs=1e-12)


def test_no_long_term_decay() -> None:
    """With all columns 1, rope's logit at distance 3000 falls below the half that the slow pairs keep here."""
    layer = random_layer(2).at(at([0, 3000]))
    ones = type(layer)(0, layer.x, torch.ones_like(layer.q), torch.ones_like(layer.k), layer.positions)
    here, rope = (logits(encoding, ones)[0, 0, 1, 0].item() for encoding in (hope(128), built("rope")))
    kept = sum(2 * math.cos(3000 * theta) for theta in (1, 0.1)) + 4
    assert here == pytest.approx(kept / math.sqrt(8))
    assert rope < here


def test_with_long_training_it_is_rope() -> None:
    layer = random_layer(5)
    assert torch.equal(logits(hope(6284), layer), logits(built("rope"), layer))


@pytest.mark.parametrize("length", [2, 6])
def test_a_training_length_below_all_waves_is_refused(length: int) -> None:
    with pytest.raises(ConfigError, match=rf"encoding: training.length {length} is shorter .* 7 or more would do"):
        hope(length)
    assert hope(7).numbers(1)["inverse_frequencies"].tolist() == [1, 0, 0, 0]
