"""Causal attention with any position encoding: the written-out definition, and the kernels that agree with it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block, LayerView

BLOCK_BYTES = 32 * 2**20
"""What the scores of one block of queries may take in evaluation."""
TRAINED_ROWS = 128
"""Queries of one block in training on a CPU: half of the scores of a long window are of keys that no query may see."""


def attend(encoding: PositionEncoding, layer: LayerView, v: Tensor, queries: slice | None = None) -> Tensor:
    """The output (B, H, Q, K) of the queries of one layer, all of them by default; `v` is (B, H, T, K).

    The queries are cut into blocks: in evaluation so that memory grows with block × length, in training on a CPU
    because a block meets no keys after its last query. A GPU takes one block in training.
    """
    q, k = encoding.rotate(layer)
    state = encoding.prepare(layer)
    hooks = encoding.hooks(layer.index)
    length = q.shape[2]
    queries = queries or slice(0, length)
    scale = 1 / math.sqrt(layer.q.shape[-1])

    def blocks(copies: int) -> Iterator[Block]:
        # the last one first: it has the most keys, and those after it find room where it was
        for rows in reversed(cut(queries, most_rows(copies * q.shape[1] * length, q.device))):
            keys = encoding.reach(layer, rows)
            yield Block(layer, state, q[:, :, rows], k[:, :, keys], rows, keys, encoding)

    if hooks & {"scores", "weights", "values"}:
        return joined([written_out(encoding, block, v) for block in blocks(q.shape[0])])
    if torch.is_grad_enabled() and q.device.type == "cpu":
        return joined([short(encoding, block, v) for block in blocks(q.shape[0])])
    if not hooks & {"bias", "by_distance", "mask"} and queries == slice(0, length):
        return fused(q, k, v, None, scale)
    if "mask" not in hooks and q.device.type == "cpu":  # kernels of a GPU want rows of a mask at aligned addresses
        offset_bias = encoding.offset_bias(layer, length)
        if offset_bias is not None:
            vector = torch.cat([offset_bias.flip(1), offset_bias.new_full((len(offset_bias), length), -math.inf)], 1)
            return joined([toeplitz(block, v, vector, scale) for block in blocks(1)])
    # a term that reads the text, or ids that do, differs by row of the batch
    rows_of_term = q.shape[0] if "bias" in hooks or "positions" in hooks else 1
    return joined([masked(encoding, block, v, scale) for block in blocks(rows_of_term)])


def most_rows(scores: int, device: torch.device) -> int:
    """How many queries of so many scores each make a block."""
    if torch.is_grad_enabled():
        return TRAINED_ROWS if device.type == "cpu" else sys.maxsize
    return max(16, BLOCK_BYTES // (4 * scores))


def cut(queries: slice, rows: int) -> list[slice]:
    """Blocks of so many queries, the last one of what is left."""
    starts = range(queries.start, queries.stop, rows)
    return [slice(start, min(start + rows, queries.stop)) for start in starts]


def joined(pieces: list[Tensor]) -> Tensor:
    """The output of all queries from that of blocks, of which the last came first."""
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces[::-1], dim=2)


def written_out(encoding: PositionEncoding, block: Block, v: Tensor) -> Tensor:
    """The definition: every other path must agree with it."""
    return encoding.values(weights_of(encoding, block).to(v.dtype), v[:, :, block.keys], block)


def weights_of(encoding: PositionEncoding, block: Block) -> Tensor:
    """The attention weights (B, H, Q, K) of the definition."""
    scores = block.scores
    bias = encoding.dense_bias(block)
    if bias is not None:
        scores = scores + bias
    return encoding.weights(scores, allowed(encoding, block), block)


def allowed(encoding: PositionEncoding, block: Block) -> Tensor:
    """Which keys a query may see: the one place where causality is decided, by token order and never by ids."""
    mask = encoding.mask(block)
    return block.causal if mask is None else block.causal & mask


def addend(encoding: PositionEncoding, block: Block) -> Tensor:
    """Bias and mask as one term: the bias where a key is allowed, else −∞."""
    bias = encoding.dense_bias(block)
    permitted = allowed(encoding, block)
    if bias is None:
        return torch.zeros_like(permitted, dtype=torch.float32).masked_fill(~permitted, -math.inf)
    return torch.where(permitted, bias, -math.inf)


def short(encoding: PositionEncoding, block: Block, v: Tensor) -> Tensor:
    """Training windows on a CPU: products and softmax in the precision of the model."""
    scores = block.dot + addend(encoding, block).to(block.q.dtype)
    return scores.softmax(dim=-1) @ v[:, :, block.keys]


def masked(encoding: PositionEncoding, block: Block, v: Tensor, scale: float) -> Tensor:
    """The fused kernel with bias and mask as one term."""
    term = addend(encoding, block).to(block.q.dtype)
    term = term.expand(1, *term.shape) if term.dim() == 3 else term
    return fused(block.q, block.k, v[:, :, block.keys], term, scale)


def toeplitz(block: Block, v: Tensor, vector: Tensor, scale: float) -> Tensor:
    """The fused kernel with a bias by token offset as a view that is never written out.

    `vector` (H, 2T) holds the bias at the offsets T−1 … 0, then −∞. With the queries in reverse order, the bias of
    query r and key j is entry r + j of it, counted from the offset of the block's last query to key 0.
    """
    length = vector.shape[1] // 2
    rows, keys = block.q.shape[2], block.k.shape[2]
    first = length - block.queries.stop
    bias = vector[:, first:].as_strided((1, vector.shape[0], rows, keys), (0, vector.stride(0), 1, 1))
    return fused(block.q.flip(2), block.k, v[:, :, block.keys], bias.to(block.q.dtype), scale).flip(2)


def fused(q: Tensor, k: Tensor, v: Tensor, term: Tensor | None, scale: float) -> Tensor:
    """The fused kernel, causal where there is no term.

    It wants values as wide as keys. Where a rotation has widened those, zeros are added: without them it falls back
    to one that takes eight times as long and holds all T × T weights.
    """
    width = v.shape[-1]
    v = pad(v, (0, k.shape[-1] - width)) if k.shape[-1] > width else v
    output = scaled_dot_product_attention(q, k, v, attn_mask=term, is_causal=term is None, scale=scale)
    return output[..., :width]
