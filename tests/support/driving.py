"""One encoding at work without a model: build it, show it a layer, and look at its logits and output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from pe_cli.attention import allowed, written_out
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.registry import build
from pe_cli.encodings.views import Block, LayerView, Positions

SPEC = ModelSpec(d_model=32, n_heads=4, n_layers=2, train_length=16, alphabet="abcdefgh", max_position=16)


def built(block: Any, dtype: torch.dtype = torch.float64, **sizes: Any) -> PositionEncoding:
    """The encoding of a block for SPEC with other sizes, in float64 unless told; parameters are seeded."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build(block, replace(SPEC, **sizes)).to(dtype)


def with_parameters(encoding: PositionEncoding, **values: Tensor) -> PositionEncoding:
    """Parameters by name take these values, broadcast over the layer axis where the encoding has one."""
    with torch.no_grad():
        for name, value in values.items():
            encoding.get_parameter(name).copy_(value)
    return encoding


def random_layer(length: int, seed: int = 0, batch: int = 2, index: int = 0, **sizes: Any) -> LayerView:
    """Normal x, q and k in float64 for SPEC with other sizes, with the ids 0, 1, 2, …"""
    spec = replace(SPEC, **sizes)
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    heads = (batch, spec.n_heads, length, spec.d_head)
    x = normal(batch, length, spec.d_model)
    return LayerView(index, x, normal(*heads), normal(*heads), Positions.sequential(length))


def layer_of(
    q: Tensor, k: Tensor, x: Tensor | None = None, ids: Sequence[float] | None = None, index: int = 0
) -> LayerView:
    """A layer with these queries and keys (H, T, K), this input (T, D), and these ids or 0, 1, 2, …"""
    length = q.shape[1]
    positions = Positions.sequential(length) if ids is None else at(ids)
    x = q.new_zeros(length, q.shape[0] * q.shape[2]) if x is None else x
    return LayerView(index, x[None], q[None], k[None], positions)


def at(ids: Sequence[float] | Tensor) -> Positions:
    """Ids (T,) that are not known to be equally spaced."""
    return Positions(torch.as_tensor(ids, dtype=torch.float32)[None])


def block_of(encoding: PositionEncoding, layer: LayerView, queries: slice | None = None) -> Block:
    """The block of all queries, or of some, with all keys up to the last query."""
    q, k = encoding.rotate(layer)
    rows = queries or slice(0, q.shape[2])
    keys = slice(0, rows.stop)
    return Block(layer, encoding.prepare(layer), q[:, :, rows], k[:, :, keys], rows, keys, encoding)


def logits(encoding: PositionEncoding, layer: LayerView) -> Tensor:
    """Scores with the bias (B, H, T, T), −∞ where a key is not allowed."""
    block = block_of(encoding, layer)
    bias = encoding.dense_bias(block)
    scores = block.scores if bias is None else block.scores + bias
    return scores.masked_fill(~allowed(encoding, block), -math.inf)


def bias(encoding: PositionEncoding, layer: LayerView) -> Tensor:
    """The dense bias (B or 1, H, T, T), with −∞ for future keys."""
    block = block_of(encoding, layer)
    dense = encoding.dense_bias(block)
    assert dense is not None
    return dense.masked_fill(~block.causal, -math.inf)


def weights(encoding: PositionEncoding, layer: LayerView) -> Tensor:
    """Attention weights (B, H, T, T)."""
    block = block_of(encoding, layer)
    return encoding.weights(logits(encoding, layer), allowed(encoding, block), block)


def output(encoding: PositionEncoding, layer: LayerView, v: Tensor, queries: slice | None = None) -> Tensor:
    """What the written-out attention gives for the values `v` (B, H, T, K)."""
    return written_out(encoding, block_of(encoding, layer, queries), v)


def by_pair(layer: LayerView, entry: Callable[[int, int, int, int], Tensor]) -> Tensor:
    """(B, H, T, T) with entry(b, h, i, j) for query i and key j, one at a time, and −∞ for future keys."""
    batch, heads, length, _ = layer.q.shape
    result = torch.full((batch, heads, length, length), -math.inf, dtype=torch.float64)
    for b, h, i in product(range(batch), range(heads), range(length)):
        for j in range(i + 1):
            result[b, h, i, j] = entry(b, h, i, j)
    return result


def table(encoding: PositionEncoding, ids: Sequence[float] | Tensor) -> Tensor:
    """What is added to the embeddings at these ids: (T, D) in float64."""
    positions = at(ids)
    x = torch.zeros(1, positions.ids.shape[1], encoding.spec.d_model, dtype=torch.float64)
    return encoding.embed(x, positions)[0]


def sequential_bias(encoding: PositionEncoding, length: int) -> Tensor:
    """The bias (H, T, T) of an encoding that looks at ids only, with −∞ for future keys."""
    spec = encoding.spec
    nothing = torch.zeros(spec.n_heads, length, spec.d_head, dtype=torch.float64)
    return bias(encoding, layer_of(nothing, nothing))[0]
