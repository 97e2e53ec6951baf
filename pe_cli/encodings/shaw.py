"""shaw: learned vectors for clipped distances, added to keys and to values."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from pe_cli.encodings._relative import far_keys
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block


@register
class Shaw(PositionEncoding):
    r"""Relative position representations.

    .. math:: s_{ij} = q_i \cdot (k_j + a^K_n) / \sqrt{d}, \quad
              o_i = \sum_j \alpha_{ij} (v_j + a^V_n), \quad n = \min(p_i - p_j,\ c)

    Each layer has its own rows, shared by the heads. The paper has 2c + 1 of them; c + 1 are left here, since
    no query meets a future key. Queries are taken as they are before any rotation by another encoding.
    """

    name = "shaw"
    family = Family.RELATIVE
    reference = "Shaw, Uszkoreit and Vaswani 2018, arXiv:1803.02155"
    year = 2018
    sees = Sees.DISTANCE
    fractional = False

    class Options(EncodingOptions):
        clip: PositiveInt = 16
        """c: all distances from here on share the last row."""
        values: bool = True
        """Whether values get a vector too; without, only keys do."""

    value_rows: nn.Parameter | None

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        shape = (spec.n_layers, options.clip + 1, spec.d_head)
        self.key_rows = nn.Parameter(torch.empty(shape).normal_(std=0.02))
        self.value_rows = nn.Parameter(torch.empty(shape).normal_(std=0.02)) if options.values else None

    def bias(self, block: Block) -> Tensor:
        rows = self.key_rows[block.layer.index]
        queries = block.layer.q[:, :, block.queries].to(rows.dtype) / math.sqrt(rows.shape[-1])
        by_row = queries @ rows.T  # (B, H, Q, c + 1): every product once, then picked by distance
        far = far_keys(block.distance, self.options.clip)
        near = by_row.gather(-1, self.row(block, far, by_row))
        return torch.cat((by_row[..., -1:].expand(*by_row.shape[:-1], far), near), dim=-1)

    def values(self, weights: Tensor, v: Tensor, block: Block) -> Tensor:
        mixed = weights @ v
        if self.value_rows is None:
            return mixed
        rows, far = self.value_rows[block.layer.index], far_keys(block.distance, self.options.clip)
        weights = weights.to(rows.dtype)
        by_row = torch.zeros(*weights.shape[:-1], len(rows), dtype=rows.dtype, device=rows.device)
        by_row = by_row.scatter_add(-1, self.row(block, far, weights), weights[..., far:])
        last = weights[..., :far].sum(dim=-1, keepdim=True)
        return mixed + (by_row @ rows + last * rows[-1]).to(mixed.dtype)

    def hooks(self, index: int) -> frozenset[str]:
        return super().hooks(index) - (frozenset() if self.options.values else {"values"})

    def row(self, block: Block, far: int, like: Tensor) -> Tensor:
        """The row of each query and each key after the first `far`, (B, H, Q, K)."""
        rows = block.distance[..., far:].clamp(0, self.options.clip).long()
        return rows[:, None].expand(*like.shape[:-1], rows.shape[-1])

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"rows": torch.arange(length).clamp(max=self.options.clip)}
