"""What an encoding does, by distance: similarity of ids, effect on the logits, attention that is left.

Everything is computed in float64. Random content has a fixed seed: equal questions have equal answers.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.attention import allowed
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import ConfigError
from pe_cli.inspection import Window
from pe_cli.seeds import seeded

DRAWS = 16
"""How many random contents a mean is over."""
MOST_PRODUCTS = 2**20
"""As many products of a query and a key are looked at: from the last queries, one at least."""
MOST_INPUTS = 2**24
"""A longer text would take too much memory."""


class ByDistance(NamedTuple):
    """Means over queries and contents, and their deviation from content to content: (T,) or (H, T), by distance.

    NaN where no key at that distance may be seen.
    """

    mean: Tensor
    deviation: Tensor


def table_similarity(window: Window) -> ByDistance:
    """The mean cosine of two rows of the table that are so many characters apart, (T,); rows of zeros have none."""
    spec, rows = window.spec, last_queries(window, 1)
    with torch.no_grad():
        zeros = torch.zeros(1, len(window.text), spec.d_model, dtype=torch.float64)
        table = F.normalize(double(window.encoding).embed(zeros, window.positions)[0], dim=-1)
        empty = (table == 0).all(dim=-1)
        products = (table[rows] @ table.T).masked_fill(empty[rows, None] | empty, math.nan)
        mean = by_offset(products, rows)
    return ByDistance(mean, torch.zeros_like(mean))


def rotary_similarity(window: Window, index: int) -> ByDistance:
    """The mean product of equal unit vectors, one turned to the id of a query, one to that of a key: (H, T).

    Their entries are ±1/√d, so that all pairs of columns count alike: where pairs are turned by id × θ this is
    Σ cos(nθ) / pairs at distance n, whatever the signs.
    """
    spec, length, rows = window.spec, len(window.text), last_queries(window)
    encoding, drawn = double(window.encoding), []
    with torch.no_grad():
        for draw in range(DRAWS):
            generator = seeded(draw, "similarity")
            signs = 2.0 * torch.randint(2, (1, spec.n_heads, 1, spec.d_head), generator=generator) - 1
            unit = (signs.double() / math.sqrt(spec.d_head)).expand(-1, -1, length, -1)
            x = normalised(torch.randn(1, 1, spec.d_model, generator=generator)).expand(-1, length, -1)
            q, k = encoding.rotate(LayerView(index, x, unit, unit, window.positions))
            drawn.append(by_offset(q[0, :, rows] @ k[0].transpose(-2, -1), rows))
    return summary(drawn)


def effect(window: Window, index: int) -> ByDistance:
    """What an encoding adds to the logits of a text of one repeated character, (H, T), in nats.

    The character is random, and so is the matrix that makes it a query and a key, the same for both, as in a
    model whose queries look for characters like their own. What remains of the logits without the encoding
    is taken away. Hidden keys do not count.
    """
    rows = last_queries(window)
    encoding, drawn = double(window.encoding), []
    with torch.no_grad():
        for draw in range(DRAWS):
            generator = seeded(draw, "effect")
            character = torch.randn(1, 1, window.spec.d_model, generator=generator).double()
            matrix = projection(window, generator)
            layer = layer_of(window, encoding, index, character.expand(-1, len(window.text), -1), matrix, matrix)
            bare = heads(normalised(character) @ matrix, window)  # (1, H, 1, K)
            block = block_of(encoding, layer, rows)
            added = logits(encoding, block) - bare.square().sum(-1, keepdim=True) / math.sqrt(window.spec.d_head)
            drawn.append(by_offset(added.masked_fill(~allowed(encoding, block), math.nan)[0], rows))
    return summary(drawn)


def attention(window: Window, index: int) -> ByDistance:
    """The weights of the last query by distance, (H, T): random characters in a model with random matrices."""
    length = len(window.text)
    rows = slice(length - 1, length)
    encoding, drawn = double(window.encoding), []
    with torch.no_grad():
        for draw in range(4 * DRAWS):
            generator = seeded(draw, "attention")
            characters = torch.randn(1, length, window.spec.d_model, generator=generator).double()
            matrices = (projection(window, generator), projection(window, generator))
            block = block_of(encoding, layer_of(window, encoding, index, characters, *matrices), rows)
            seen = allowed(encoding, block)
            weights = encoding.weights(logits(encoding, block), seen, block)
            drawn.append(by_offset(weights.masked_fill(~seen, math.nan)[0], rows))
    return summary(drawn)


def last_queries(window: Window, n_heads: int | None = None) -> slice:
    """As many of the last characters as a mean is over. ConfigError for a text of more than MOST_INPUTS numbers."""
    length, width = len(window.text), window.spec.d_model
    if length * width > MOST_INPUTS:
        most = MOST_INPUTS // width
        raise ConfigError(f"length {length}: with model.d_model {width}, curves are drawn up to length {most}")
    rows = MOST_PRODUCTS // ((n_heads or window.spec.n_heads) * length)
    return slice(length - min(length, max(1, rows)), length)


def double(encoding: PositionEncoding) -> PositionEncoding:
    return copy.deepcopy(encoding).double()


def normalised(x: Tensor) -> Tensor:
    """As the norm before attention does it."""
    return F.rms_norm(x.double(), x.shape[-1:])


def projection(window: Window, generator: torch.Generator) -> Tensor:
    """A random matrix that leaves entries of size 1."""
    width = window.spec.d_model
    return torch.randn(width, width, generator=generator).double() / math.sqrt(width)


def heads(x: Tensor, window: Window) -> Tensor:
    return x.unflatten(-1, (window.spec.n_heads, -1)).transpose(1, 2)


def layer_of(
    window: Window, encoding: PositionEncoding, index: int, embeddings: Tensor, query: Tensor, key: Tensor
) -> LayerView:
    """The first layer at these embeddings (1, T, D), though it may say that it is another."""
    x = normalised(encoding.embed(embeddings, window.positions))
    return LayerView(index, x, heads(x @ query, window), heads(x @ key, window), window.positions)


def block_of(encoding: PositionEncoding, layer: LayerView, rows: slice) -> Block:
    """These queries and all keys."""
    q, k = encoding.rotate(layer)
    return Block(layer, encoding.prepare(layer), q[:, :, rows], k, rows, slice(0, k.shape[2]), encoding)


def logits(encoding: PositionEncoding, block: Block) -> Tensor:
    """Scores with the bias (1, H, Q, T)."""
    bias = encoding.dense_bias(block)
    return block.scores if bias is None else block.scores + bias


def by_offset(values: Tensor, rows: slice) -> Tensor:
    """The mean over the queries `rows` of `values` (…, Q, T) by distance in characters, (…, T); NaN do not count."""
    length = values.shape[-1]
    offset = torch.arange(rows.start, rows.stop)[:, None] - torch.arange(length)
    known = (offset >= 0) & ~values.isnan()
    place = offset.clamp(min=0).expand(values.shape).flatten(-2)
    sums, counts = (
        torch.zeros(*values.shape[:-2], length, dtype=torch.float64).scatter_add(-1, place, part.flatten(-2).double())
        for part in (values.masked_fill(~known, 0.0), known)
    )
    return sums / counts  # 0 / 0 is NaN


def summary(drawn: list[Tensor]) -> ByDistance:
    together = torch.stack(drawn)
    return ByDistance(together.mean(0), together.std(0, correction=0))
