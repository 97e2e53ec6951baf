"""What relative encodings share: products with vectors of distances, by query and key, and sums over the text."""

from __future__ import annotations

import torch
from torch import Tensor

from pe_cli.encodings.views import Block, LayerView


def falling_distances(layer: LayerView) -> Tensor | None:
    """The distances T − 1, …, 1, 0 and once more 0, times the spacing of the ids; None where they have none.

    The last K + 1 belong to the keys of a block that `is_run` allows.
    """
    if layer.positions.step is None:
        return None
    length = layer.q.shape[2]
    falling = torch.arange(length - 1, -2, -1, device=layer.q.device, dtype=torch.float32)
    return falling.clamp(min=0) * layer.positions.step


def is_run(block: Block) -> bool:
    """Whether the keys are all those from one on up to the last query."""
    return isinstance(block.keys, slice) and block.keys.stop == block.queries.stop


def skewed(products: Tensor) -> Tensor:
    """Products by distance, (…, Q, K + 1), as products by key, (…, Q, K): a view, nothing is copied or picked.

    The distances fall to 0 in column K − 1. Column K and the keys after a query hold numbers without meaning.
    """
    queries, keys = products.shape[-2], products.shape[-1] - 1
    # query r and key j are at column Q − 1 − r + j of row r, which is entry Q − 1 + r K + j
    return products.flatten(-2)[..., queries - 1 : queries - 1 + queries * keys].unflatten(-1, (queries, keys))


def skewed_keys(products: Tensor) -> Tensor:
    """Products of keys by distance, (…, T, T + 1), as products by query and key, (…, T, T): a view.

    The distances rise from 0 in column 1. Column 0 and the keys after a query hold numbers without meaning.
    """
    length = products.shape[-2]
    # query i and key j are at column 1 + i − j of row j, which is entry 1 + j T + i
    return products.flatten(-2)[..., 1 : 1 + length * length].unflatten(-1, (length, length)).transpose(-2, -1)


def far_keys(distance: Tensor, limit: float) -> int:
    """How many of the first keys are at `limit` or further from every query, (B or 1, Q, K): they share a row."""
    beyond = (distance >= limit).flatten(0, 1).all(dim=0)
    return int(beyond.long().cumprod(0).sum())


def sum_between(sums: Tensor, block: Block) -> Tensor:
    """What is summed up after each key, up to each query, (B, H, Q, K), where `sums` (B, H, T) runs from the start."""
    # counted from the block's first query: near keys, whose weight is large, get small and exact terms
    sums = (sums - sums[:, :, block.queries.start, None]).to(block.layer.x.dtype)
    return sums[:, :, block.queries, None] - sums[:, :, None, block.keys]
