"""Shaw's relative vectors, against a construction that writes every vector out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, bias, built, logits, output, random_layer
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView, Positions


def shaw(clip: int = 3, values: bool = True, **sizes: Any) -> PositionEncoding:
    """Rows of size 1, so that they count."""
    encoding = built({"name": "shaw", "clip": clip, "values": values}, **sizes)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.mul_(50)
    return encoding


def written_out_in_full(encoding: PositionEncoding, layer: LayerView, v: Tensor, clip: int) -> Tensor:
    """The paper's sums, one query, key and head at a time."""
    key_rows = encoding.get_parameter("key_rows")[layer.index]
    value_rows = encoding.get_parameter("value_rows")[layer.index]
    ids = layer.positions.ids[0]
    result = torch.empty_like(v)
    for b, h, i in ((b, h, i) for b in range(2) for h in range(4) for i in range(v.shape[2])):
        rows = [min(int(ids[i] - ids[j]), clip) for j in range(i + 1)]
        keys = torch.stack([layer.k[b, h, j] + key_rows[row] for j, row in enumerate(rows)])
        alpha = (keys @ layer.q[b, h, i] / math.sqrt(8)).softmax(dim=0)
        result[b, h, i] = sum(alpha[j] * (v[b, h, j] + value_rows[row]) for j, row in enumerate(rows))
    return result


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("ids", [range(7), [0, 0, 1, 5, 6, 6, 40]])
def test_output_is_the_sum_of_the_paper(index: int, ids: list[int]) -> None:
    layer = random_layer(7, index=index).at(at(list(ids)))
    v = random_layer(7, seed=1).k
    encoding = shaw()
    torch.testing.assert_close(output(encoding, layer, v), written_out_in_full(encoding, layer, v, clip=3))


def test_all_distances_from_the_clip_on_share_a_row() -> None:
    rows = shaw(clip=16).numbers(4097)["rows"]
    assert rows[[0, 1, 15, 16, 17, 4096]].tolist() == [0, 1, 15, 16, 16, 16]
    ours = bias(shaw(clip=2, n_layers=1), random_layer(200))[0, 0, -1]
    assert torch.equal(ours[:198], ours[:1].expand(198))
    assert ours[197:].unique().numel() == 3


def test_no_row_is_spent_on_future_keys() -> None:
    shapes = {name: tuple(value.shape) for name, value in shaw(clip=5, n_layers=3).state_dict().items()}
    assert shapes == {"key_rows": (3, 6, 8), "value_rows": (3, 6, 8)}


def test_without_values_only_keys_have_rows_and_no_hook_is_left() -> None:
    encoding = shaw(values=False)
    assert list(encoding.state_dict()) == ["key_rows"]
    assert encoding.hooks(0) == {"bias"}
    layer = random_layer(5)
    torch.testing.assert_close(output(encoding, layer, layer.k), logits(encoding, layer).softmax(-1) @ layer.k)


def test_with_rope_logits_still_see_distances_only() -> None:
    """A rotated query times a row would depend on the id of the query."""
    mixed = built({"name": "mix", "parts": ["rope", "shaw"]})
    with torch.no_grad():
        mixed.get_parameter("parts.1.key_rows").mul_(50)
    layer = random_layer(6)
    here, there = (layer.at(parts_at(shift, 6)) for shift in (0, 100))
    torch.testing.assert_close(logits(mixed, here), logits(mixed, there), atol=1e-10, rtol=0)


def parts_at(shift: int, length: int) -> Positions:
    own = at(torch.arange(length) + shift)
    return Positions(own.ids, parts=(own, own))


def test_bfloat16_products_with_rows_are_taken_in_float32() -> None:
    layer = random_layer(5)
    half = LayerView(0, layer.x, layer.q.bfloat16(), layer.k.bfloat16(), layer.positions)
    encoding = built("shaw", torch.float32)
    assert bias(encoding, half).dtype == torch.float32
    assert output(encoding, half, layer.k.bfloat16()).dtype == torch.bfloat16


def test_ids_between_whole_numbers_have_no_row() -> None:
    assert not shaw().fractional
