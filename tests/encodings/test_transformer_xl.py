"""Transformer-XL's relative attention, against the four terms of the paper written out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, bias, block_of, built, layer_of, logits, random_layer, with_parameters
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.errors import ConfigError


def grown(options: dict[str, Any] | None = None, **sizes: Any) -> PositionEncoding:
    """Parameters of size 1, so that they count."""
    encoding = built({"name": "transformer_xl", **(options or {})}, **sizes)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.mul_(50)
    return encoding


def four_terms(encoding: PositionEncoding, layer: LayerView, limit: float = math.inf) -> Tensor:
    """Terms (a) to (d) of the paper, one query and key at a time; the sinusoid is written entry by entry."""
    weight = encoding.get_parameter("weight")[layer.index]
    u, v = encoding.get_parameter("u"), encoding.get_parameter("v")
    ids, d_model = layer.positions.ids[0].tolist(), layer.x.shape[-1]
    batch, heads, length, width = layer.q.shape
    result = torch.full((batch, heads, length, length), -math.inf, dtype=torch.float64)
    for i in range(length):
        for j in range(i + 1):
            n = min(ids[i] - ids[j], limit)
            waves = [n / 10000 ** (2 * pair / d_model) for pair in range((d_model + 1) // 2)]
            sinusoid = [math.sin(wave) for wave in waves] + [math.cos(wave) for wave in waves]
            position = weight @ torch.tensor(sinusoid, dtype=torch.float64)
            q, k = layer.q[:, :, i], layer.k[:, :, j]
            terms = q * k, q * position, u * k, v * position
            result[:, :, i, j] = sum(term.sum(dim=-1) for term in terms) / math.sqrt(width)
    return result


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("clamp", [None, 3])
@pytest.mark.parametrize("ids", [None, range(9), [0, 0, 1, 5, 6, 6.25, 40, 3000.5, 4001]])
def test_logits_are_the_four_terms_of_the_paper(index: int, clamp: int | None, ids: list[float] | None) -> None:
    """With equally spaced ids products are taken by distance, with others by an identity of sine and cosine."""
    layer = random_layer(9, index=index)
    layer = layer if ids is None else layer.at(at(list(ids)))
    encoding = grown({"clamp": clamp})
    expected = four_terms(encoding, layer, clamp or math.inf)
    torch.testing.assert_close(logits(encoding, layer), expected, atol=1e-9, rtol=0)


def test_the_spacing_of_the_ids_counts() -> None:
    half = Positions(torch.arange(8, dtype=torch.float32)[None] / 2, step=0.5)
    layer = random_layer(8).at(half)
    torch.testing.assert_close(logits(grown(), layer), four_terms(grown(), layer), atol=1e-9, rtol=0)


def test_each_row_of_a_batch_has_its_own_ids() -> None:
    layer = random_layer(5)
    ids = torch.tensor([[0.0, 1, 2, 3, 4], [0, 7, 9, 9.5, 30]])
    both = bias(grown(), layer.at(Positions(ids)))
    for row in range(2):
        torch.testing.assert_close(both[row], bias(grown(), layer.at(at(ids[row])))[row], atol=1e-9, rtol=0)


def test_without_weight_and_u_the_logits_are_plain_and_u_prefers_keys_that_agree_with_it() -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    plain = with_parameters(built("transformer_xl"), weight=zero, u=zero)
    layer = random_layer(6)
    assert bias(plain, layer).masked_fill(block_of(plain, layer).offset < 0, 0).abs().max() == 0
    keyed = with_parameters(plain, u=torch.eye(4, 8, dtype=torch.float64))  # head h has u along column h
    ours = bias(keyed, layer)[:, 2, 5]
    torch.testing.assert_close(ours, layer.k[:, 2, :, 2] / math.sqrt(8))


def test_v_alone_is_a_bias_by_distance_that_waves() -> None:
    """W_R that picks the sine and the cosine of the fastest pair, with v along the cosine: cos n."""
    weight = torch.zeros(4, 8, 32, dtype=torch.float64)
    weight[:, 0, 0] = weight[:, 1, 16] = 1.0
    v = torch.zeros(4, 8, dtype=torch.float64)
    v[:, 1] = math.sqrt(8)
    encoding = with_parameters(built("transformer_xl"), weight=weight, v=v, u=torch.zeros(1, dtype=torch.float64))
    nothing = torch.zeros(4, 30, 8, dtype=torch.float64)
    row = bias(encoding, layer_of(nothing, nothing))[0, 1, -1]
    assert row.tolist() == pytest.approx([math.cos(n) for n in range(29, -1, -1)], abs=1e-9)


def test_clamped_distances_are_all_alike() -> None:
    row = bias(with_parameters(grown({"clamp": 5}), u=torch.zeros(1, dtype=torch.float64)), random_layer(40))[0, 0, -1]
    torch.testing.assert_close(row[:35], row[:1].expand(35), atol=1e-9, rtol=0)
    assert (row[35] - row[34]).abs() > 1e-3


def test_only_the_projection_differs_by_layer() -> None:
    shapes = {name: tuple(value.shape) for name, value in built("transformer_xl", n_layers=3).state_dict().items()}
    assert shapes == {"weight": (3, 4, 8, 32), "u": (4, 8), "v": (4, 8)}


def test_an_odd_width_has_one_more_cosine() -> None:
    encoding = grown(d_model=15, n_heads=3)
    assert encoding.get_parameter("weight").shape == (2, 3, 5, 16)
    layer = random_layer(6, d_model=15, n_heads=3)
    torch.testing.assert_close(logits(encoding, layer), four_terms(encoding, layer), atol=1e-9, rtol=0)


def test_bfloat16_queries_and_far_ids_keep_float32_angles() -> None:
    layer = random_layer(5)
    half = LayerView(0, layer.x, layer.q.bfloat16(), layer.k.bfloat16(), layer.positions)
    encoding = built("transformer_xl", torch.float32)
    assert bias(encoding, half).dtype == torch.float32
    far = bias(grown().float(), half.at(at([1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4])))
    torch.testing.assert_close(far, bias(grown().float(), half), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clamp": 0}, "clamp: must be greater than 0"),
        ({"clamp": 2.5}, "clamp: must be a whole number"),
        ({"base": 0}, "base: must be greater than or equal to 1"),
    ],
)
def test_options_that_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "transformer_xl", **options})
