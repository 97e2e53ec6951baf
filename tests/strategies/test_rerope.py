import math

import numpy as np
import pytest
import torch

from pe_cli import strategies
from pe_cli.attention import attend
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import StrategyRefused
from pe_cli.strategies._distances import TwoRanges, equally_far

SPEC = ModelSpec(d_model=32, n_heads=4, n_layers=2, train_length=8, alphabet="ab", max_position=8)
LENGTH = 20


def capped(rope: PositionEncoding, window: int, log_n: int | None = None) -> PositionEncoding:
    return TwoRanges(rope, window, equally_far(window), log_n)


def layer_of(length: int = LENGTH) -> LayerView:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 4, length, 8, generator=generator)
    return LayerView(0, torch.zeros(1, length, 32), q, k, Positions.sequential(length))


def scores_of(encoding: PositionEncoding, layer: LayerView) -> torch.Tensor:
    """Causal logits (H, T, T), zero where a key is in the future."""
    q, k = encoding.rotate(layer)
    everything = slice(0, q.shape[2])
    block = Block(layer, encoding.prepare(layer), q, k, everything, everything, encoding)
    return block.scores[0].tril()


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("log_n_length", [None, 8])
def test_logits_against_complex_numbers_in_float64(layout: str, log_n_length: int | None) -> None:
    layer, window = layer_of(), 5
    pairs = [(c, c + 4) if layout == "halves" else (2 * c, 2 * c + 1) for c in range(4)]
    first, second = (np.array(columns) for columns in zip(*pairs, strict=True))
    q, k = (x[0].double().numpy() for x in (layer.q, layer.k))
    q, k = (x[..., first] + 1j * x[..., second] for x in (q, k))  # (H, T, 4)
    frequencies = 10000.0 ** (-np.arange(4) / 4)
    expected = np.zeros((4, LENGTH, LENGTH))
    for i in range(LENGTH):
        for j in range(i + 1):
            turned = q[:, i] * np.exp(1j * min(i - j, window) * frequencies)
            expected[:, i, j] = (turned * k[:, j].conj()).real.sum(axis=-1) / math.sqrt(8)
            if log_n_length is not None:
                expected[:, i, j] *= max(1.0, math.log(i + 1) / math.log(log_n_length))
    rope = registry.build({"name": "rope", "layout": layout}, SPEC)
    found = scores_of(capped(rope, window, log_n_length), layer)
    np.testing.assert_allclose(found.numpy(), expected, atol=5e-6)


def test_near_characters_are_met_as_in_training() -> None:
    rope, layer = registry.build("rope", SPEC), layer_of()
    near = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril().triu(-4)  # distances up to the window
    plain, limited = scores_of(rope, layer), scores_of(capped(rope, 4), layer)
    torch.testing.assert_close(limited[:, near], plain[:, near])
    assert (limited - plain).abs().max() > 0.1


def test_the_strategy_has_half_the_trained_length_as_window_and_the_log_factor() -> None:
    rope = registry.build("rope", SPEC)
    changed = strategies.apply("rerope", rope, 8, LENGTH)
    assert torch.equal(scores_of(changed, layer_of()), scores_of(capped(rope, 4, 8), layer_of()))


def test_query_blocks_give_the_same_output() -> None:
    encoding = capped(registry.build("rope", SPEC), 3, 8)
    layer = layer_of()
    v = torch.randn(layer.q.shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = attend(encoding, layer, v)
        pieces = [attend(encoding, layer, v, slice(start, start + 5)) for start in range(0, LENGTH, 5)]
    torch.testing.assert_close(torch.cat(pieces, dim=2), whole)


@pytest.mark.parametrize(
    "block", [{"name": "rope_partial", "fraction": 0.5}, {"name": "sliding_window", "window": 9}, "p_rope", "rope_evq"]
)
def test_a_rotation_is_found_inside(block: dict[str, object]) -> None:
    assert "scores" in strategies.apply("rerope", registry.build(block, SPEC), 8, 16).hooks(0)


@pytest.mark.parametrize("name", ["xpos", "pope", "hope"])
def test_logits_from_the_window_on_are_those_at_the_window(name: str) -> None:
    """With one query and one key for all characters, logits show the distances alone."""
    encoding, layer, window = registry.build(name, SPEC), layer_of(), 5
    q, k = (x[:, :, :1].expand_as(x) for x in (layer.q, layer.k))
    same = LayerView(0, layer.x, q, k, layer.positions)
    plain, limited = scores_of(encoding, same), scores_of(capped(encoding, window), same)
    for i in range(LENGTH):
        for j in range(i + 1):
            torch.testing.assert_close(limited[:, i, j], plain[:, min(i - j, window), 0], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("alibi", "it limits the distances of a pure rotation"),
        ("sinusoidal", "it limits the distances of a pure rotation"),
        ("fope", "its rotation depends on more than the distance"),
        ("none", "it uses no ids"),
        ("bipe", "its ids are read from the text"),
    ],
)
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"rerope has no meaning for {name}: {why}"):
        strategies.apply("rerope", registry.build(name, SPEC), 8, 16)
