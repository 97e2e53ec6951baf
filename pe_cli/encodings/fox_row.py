"""fox_row: forget gates that each query sets for itself, by a small attention of its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, Width
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView


@register
class FoXRow(PositionEncoding):
    r"""Forget gates by row: what is forgotten depends on who asks.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + \sum_{t=j}^{i-1} \ln f_{it}, \quad
              f_{it} = \sigma(q'_i \cdot k'_t / \sqrt{d'}), \quad q'_i = A_h x_i, \quad k'_t = B_h x_t

    The gate of the key itself counts and that of the query does not, the other way round than in forgetting
    attention. No paper describes it. All characters up to the query have a gate, also those that a mask hides.
    """

    name = "fox_row"
    family = Family.CONTEXT
    reference = "Wang 2024, github.com/lucidrains/x-transformers, PerRowDataDependentAlibi"
    year = 2024
    sees = Sees.NOTHING

    class Options(EncodingOptions):
        width: Width = 8
        """d': the columns of q' and k' in each head."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        limit = spec.d_model**-0.5
        shape = (spec.n_layers, spec.n_heads * options.width, spec.d_model)
        self.query = nn.Parameter(torch.empty(shape).uniform_(-limit, limit))
        self.key = nn.Parameter(torch.empty(shape).uniform_(-limit, limit))

    def prepare(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """q'/√d' and k', (B, H, T, d')."""
        q, k = (
            F.linear(layer.x, matrix[layer.index]).unflatten(-1, (self.spec.n_heads, -1)).transpose(1, 2)
            for matrix in (self.query, self.key)
        )
        return q / math.sqrt(self.options.width), k

    def bias(self, block: Block) -> Tensor:
        q, k = block.state
        from_last = block.index[: block.queries.stop].flip(0)  # summed from the query back: near keys stay exact
        uncounted = from_last >= block.query_index[:, None]
        gates = F.logsigmoid(q[:, :, block.queries] @ k[:, :, from_last].transpose(-2, -1))
        return gates.masked_fill_(uncounted, 0.0).cumsum_(dim=-1).flip(-1)[..., block.keys]
