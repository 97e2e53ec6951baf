"""What some queries and some keys give is cut from what all of them give."""

from __future__ import annotations

import pytest
import torch
from driving import at, block_of, built, output, random_layer
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block

BY_DISTANCE = [
    {"name": "deberta", "clip": 3},
    {"name": "deberta", "clip": 3, "p2c": "off"},
    {"name": "rel_proj", "basis": 3, "max_distance": 4},
    {"name": "transformer_xl"},
]
OTHERS = [{"name": "tupe"}, {"name": "fox"}, {"name": "cable"}]


def grown(block: dict[str, object]) -> PositionEncoding:
    """With parameters of size 1, so that all of them count."""
    encoding, generator = built(block), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return encoding


@pytest.mark.parametrize("queries", [slice(0, 1), slice(4, 9), slice(8, 9), slice(3, 7)], ids=str)
@pytest.mark.parametrize("spaced", [True, False])
@pytest.mark.parametrize("block", BY_DISTANCE + OTHERS, ids=str)
def test_a_block_of_queries_gives_what_the_whole_gives(block: dict[str, object], spaced: bool, queries: slice) -> None:
    layer, v, encoding = random_layer(9), random_layer(9, seed=1).k, grown(block)
    layer = layer if spaced else layer.at(at(range(9)))
    torch.testing.assert_close(output(encoding, layer, v, queries), output(encoding, layer, v)[:, :, queries])


@pytest.mark.parametrize("keys", [slice(2, 9), torch.tensor([1, 4, 6, 7, 8])], ids=["slice", "index"])
@pytest.mark.parametrize("block", BY_DISTANCE, ids=str)
def test_a_block_with_fewer_keys_has_the_columns_of_the_whole(block: dict[str, object], keys: slice | Tensor) -> None:
    encoding, layer = grown(block), random_layer(9)
    whole = block_of(encoding, layer, slice(6, 9))
    few = Block(layer, whole.state, whole.q, whole.k[:, :, keys], whole.queries, keys, encoding)
    expected, ours = encoding.bias(whole), encoding.bias(few)
    assert expected is not None
    assert ours is not None
    torch.testing.assert_close(ours[..., few.causal], expected[..., keys][..., few.causal])
