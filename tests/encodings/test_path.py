"""PaTH: the chunked walk against products of whole matrices, and what those matrices are made of."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from driving import at, block_of, built, layer_of, logits, output, random_layer, with_parameters
from torch import Tensor

from pe_cli.attention import attend
from pe_cli.encodings import path
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView
from pe_cli.errors import ConfigError


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def matrices(encoding: PositionEncoding, layer: LayerView, row: int, head: int) -> list[Tensor]:
    """H of each character of one row and head, from the paper's equations written out in scalars."""
    down, up, taps, strength, strength_bias = (
        encoding.get_parameter(name)[layer.index] for name in ("down", "up", "taps", "strength", "strength_bias")
    )
    width = layer.q.shape[-1]
    columns = range(head * width, (head + 1) * width)
    low = [up @ (down @ x) for x in layer.x[row]]
    found = []
    for t, x in enumerate(layer.x[row]):
        mixed = [
            sum(taps[c, -1 - back].item() * low[t - back][c].item() for back in range(taps.shape[1]) if back <= t)
            for c in columns
        ]
        w = torch.tensor([z * sigmoid(z) for z in mixed], dtype=torch.float64)
        w = w / w.norm()
        beta = 2 * sigmoid((strength[head] @ x + strength_bias[head]).item())
        found.append(torch.eye(width, dtype=torch.float64) - beta * torch.outer(w, w))
    return found


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("size", [3, 64])
@torch.no_grad()
def test_logits_are_products_of_matrices(index: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "CHUNK", size)
    layer, encoding = random_layer(11, index=index), built("path")
    ours = logits(encoding, layer)[1, 2]
    transformations = matrices(encoding, layer, row=1, head=2)
    for i in range(11):
        for j in range(i + 1):
            product = torch.eye(8, dtype=torch.float64)
            for t in range(j + 1, i + 1):
                product = product @ transformations[t]
            expected = layer.k[1, 2, j] @ product @ layer.q[1, 2, i] / math.sqrt(8)
            torch.testing.assert_close(ours[i, j], expected, atol=1e-12, rtol=0)


def test_the_transformation_of_the_query_acts_first_and_that_of_the_key_not_at_all() -> None:
    """Three characters with w = e₁, (e₁ + e₂)/√2, e₁ and β = 1: each takes away what the query has along w."""
    half = math.sqrt(0.5)
    w = torch.tensor([[1, 0], [half, half], [1, 0]], dtype=torch.float64)[None, None]
    q = torch.tensor([[0, 0], [0, 0], [5, 8]], dtype=torch.float64)[None]
    k = torch.tensor([[1, 0], [1, 0], [1, 0]], dtype=torch.float64)[None]
    encoding = built("path", d_model=2, n_heads=1)
    block = block_of(encoding, layer_of(q, k))
    state = path.chunks(k[None], w, torch.ones(1, 1, 3, dtype=torch.float64))
    row = replace(block, state=state).scores[0, 0, 2] * math.sqrt(2)
    # (5, 8) at the own key; (0, 8) after H of the query; (−4, 4) after that of the middle one
    assert row.tolist() == pytest.approx([-4, 0, 5])


def test_a_reflection_twice_is_the_identity() -> None:
    """β = 2 and one direction for all: logits of even distances are q·k, those of odd ones mirrored."""
    layer = random_layer(6, n_heads=1, d_model=2, batch=1)
    w = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 1, 6, 2)
    encoding = built("path", d_model=2, n_heads=1)
    block = block_of(encoding, layer)
    state = path.chunks(layer.k, w, torch.full((1, 1, 6), 2, dtype=torch.float64))
    ours = replace(block, state=state).scores[0, 0]
    mirrored = layer.k * torch.tensor([-1.0, 1.0])
    for distance in range(6):
        keys = mirrored if distance % 2 else layer.k
        expected = (layer.q[0, 0, distance:] * keys[0, 0, : 6 - distance]).sum(dim=-1) / math.sqrt(2)
        torch.testing.assert_close(ours.diagonal(-distance), expected)


@torch.no_grad()
def test_without_strength_it_is_plain_attention() -> None:
    layer, encoding = random_layer(70), built("path")
    with_parameters(encoding, strength=torch.zeros(1), strength_bias=torch.full((1,), -800.0))
    v = random_layer(70, seed=1).k
    torch.testing.assert_close(attend(encoding, layer, v), attend(built("none"), layer, v))


@pytest.mark.parametrize("size", [1, 3, 8, 64])
@torch.no_grad()
def test_blocks_of_queries_and_keys_are_cut_from_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, v, encoding = random_layer(21), random_layer(21, seed=1).k, built("path")
    whole = logits(encoding, layer)
    expected = output(encoding, layer, v)
    monkeypatch.setattr(path, "CHUNK", size)
    for rows in (slice(0, 1), slice(5, 9), slice(13, 21)):
        torch.testing.assert_close(output(encoding, layer, v, rows), expected[:, :, rows])
    for rows in (slice(7, 9), slice(13, 21)):
        for keys in (slice(4, rows.stop), torch.tensor([2, 3, 8])):
            seen = whole[:, :, rows][..., keys]
            scores = replace(block_of(encoding, layer, rows), keys=keys).scores
            torch.testing.assert_close(scores.masked_fill(seen.isinf(), -math.inf), seen)


@torch.no_grad()
def test_it_stays_exact_over_a_long_text_of_strong_transformations() -> None:
    """No query grows, whatever the text: |1 − β| ≤ 1. In float32 the logits are those of float64."""
    layer = random_layer(600, batch=1)
    encoding = with_parameters(built("path"), strength_bias=torch.full((1,), 4.0))
    exact = logits(encoding, layer)
    single = LayerView(0, layer.x.float(), layer.q.float(), layer.k.float(), layer.positions)
    torch.testing.assert_close(logits(encoding.float(), single).double(), exact, atol=5e-5, rtol=0)


def test_directions_have_length_one() -> None:
    encoding = built("path")
    assert isinstance(encoding, path.PaTH)
    w = encoding.directions(random_layer(9))
    torch.testing.assert_close(w.square().sum(dim=-1), torch.ones(2, 4, 9, dtype=torch.float64))


def test_sizes_and_layers() -> None:
    shapes = {name: tuple(value.shape) for name, value in built("path", n_layers=3).state_dict().items()}
    assert shapes == {
        "down": (3, 32, 32),
        "up": (3, 32, 32),
        "taps": (3, 32, 3),
        "strength": (3, 4, 32),
        "strength_bias": (3, 4),
    }
    assert built({"name": "path", "rank": 5}).get_parameter("down").shape == (2, 5, 32)


def test_ids_are_not_looked_at() -> None:
    layer, encoding = random_layer(6), built("path")
    assert torch.equal(logits(encoding, layer), logits(encoding, layer.at(at([3, 1, 1, 0, 9.5, 400]))))


def test_a_rotation_cannot_be_added() -> None:
    with pytest.raises(ConfigError, match="both change 'rotate'"):
        built({"name": "mix", "parts": ["path", "rope"]})


@pytest.mark.parametrize("options", [{"rank": 0}, {"width": 0}, {"rank": 1.5}])
def test_options_that_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        built({"name": "path", **options})
