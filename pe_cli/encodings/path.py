"""path: between a key and a query, each character of the text transforms what the query looks for."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._distance import drawn
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, Width
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView

CHUNK = 64
"""Keys that are worked on together: their transformations are solved for as one triangular system."""


class Chunks(NamedTuple):
    """The keys and their transformations in n chunks of C, the last one filled up with zeros."""

    k: Tensor
    """(B, H, n, C, K)"""
    w: Tensor
    """(B, H, n, C, K)"""
    solved: Tensor
    """(B, H, n, C, C): from the products w·q of a query to how much of each w is taken from it."""
    met: Tensor
    """(B, H, n, C, C): k·w of each key with the directions of later ones."""


@register
class PaTH(PositionEncoding):
    r"""Position encoding via accumulating Householder transformations.

    .. math:: s_{ij} = k_j^\top \Bigl(\prod_{t=j+1}^{i} H_t\Bigr) q_i / \sqrt{d}, \quad
              H_t = I - \beta_t w_t w_t^\top, \quad \beta_t = 2 \sigma(u_h \cdot x_t + b_h), \quad
              w_t = \operatorname{norm}(\operatorname{SiLU}(\operatorname{conv}(A_2 A_1 x)_t))

    H of the query acts first, and that of the key not at all. The convolution reads a character and those just
    before it, each column by itself; w has length 1 in each head. The products take the place of a rotation, so
    one cannot be added. The paper's PaTH-FoX is a `mix` with forget gates; the released kernels divide the
    sums of their logarithms by √d too.
    """

    name = "path"
    family = Family.CONTEXT
    reference = "Yang et al. 2025, arXiv:2505.16381"
    year = 2025
    sees = Sees.NOTHING

    class Options(EncodingOptions):
        rank: Width = 32
        """Columns between the two matrices that w is made with."""
        width: Width = 3
        """How many characters the convolution reads, its own included."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        layers, width = spec.n_layers, spec.d_model
        self.down = drawn(width, layers, options.rank, width)
        self.up = drawn(options.rank, layers, width, options.rank)
        self.taps = drawn(options.width, layers, width, options.width)
        self.strength = drawn(width, layers, spec.n_heads, width)
        self.strength_bias = drawn(width, layers, spec.n_heads)

    def prepare(self, layer: LayerView) -> Chunks:
        strength = F.linear(layer.x, self.strength[layer.index], self.strength_bias[layer.index])
        return chunks(layer.k, self.directions(layer), 2 * strength.sigmoid().transpose(1, 2))

    def directions(self, layer: LayerView) -> Tensor:
        """w (B, H, T, K)."""
        taps = self.taps[layer.index]
        x = F.linear(F.linear(layer.x, self.down[layer.index]), self.up[layer.index]).transpose(1, 2)
        x = F.conv1d(F.pad(x, (taps.shape[-1] - 1, 0)), taps[:, None], groups=len(taps))
        return F.normalize(F.silu(x).unflatten(1, (self.spec.n_heads, -1)).transpose(2, 3), dim=-1)

    def scores(self, block: Block) -> Tensor:
        """Each query walks from its own character to the left and is transformed on its way."""
        state: Chunks = block.state
        size = state.w.shape[-2]
        q = block.layer.q[:, :, block.queries].to(state.w.dtype) / math.sqrt(state.w.shape[-1])
        keys = block.keys
        first = (keys.start if isinstance(keys, slice) else int(keys[0])) // size
        columns = []
        for number in reversed(range(first, (block.queries.stop - 1) // size + 1)):
            k, w, solved, met = (part[:, :, number] for part in state)
            index = torch.arange(number * size, (number + 1) * size, device=q.device)
            future = index > block.query_index[:, None]  # no transformation after the query acts on it
            taken = (q @ w.transpose(-2, -1)).masked_fill(future, 0.0) @ solved.transpose(-2, -1)
            columns.append(q @ k.transpose(-2, -1) - taken @ met.transpose(-2, -1))
            q = q - taken @ w
        scores, start = torch.cat(columns[::-1], dim=-1), first * size
        return scores[..., slice(keys.start - start, keys.stop - start) if isinstance(keys, slice) else keys - start]

    def hooks(self, index: int) -> frozenset[str]:
        return super().hooks(index) | {"rotate"}

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"strengths": 2 * self.strength_bias.detach().sigmoid()}


def chunks(k: Tensor, w: Tensor, strength: Tensor) -> Chunks:
    r"""What is the same for all queries, from k and w (B, H, T, K) and β (B, H, T).

    A query loses c_t w_t at each t, in descending order: c_t = β_t (w_t·q − Σ_{u>t} c_u w_t·w_u). For a chunk that
    is a triangular system, (I + diag(β) U) c = diag(β) W q, with U the products of two w above the diagonal.
    """
    length = k.shape[2]
    size = min(CHUNK, length)
    more = -length % size  # a β of zero leaves a query as it is
    k, w = (F.pad(part, (0, 0, 0, more)).unflatten(2, (-1, size)) for part in (k.to(w.dtype), w))
    strength = F.pad(strength, (0, more)).unflatten(2, (-1, size))
    products = strength[..., None] * (w @ w.transpose(-2, -1))
    solved = torch.linalg.solve_triangular(products, torch.diag_embed(strength), upper=True, unitriangular=True)
    return Chunks(k, w, solved, (k @ w.transpose(-2, -1)).triu(1))
