"""rel_proj: each query mixes a few learned curves over distance into a bias of its own."""

from __future__ import annotations

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._relative import falling_distances, far_keys, is_run, skewed
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView


@register
class RelProj(PositionEncoding):
    r"""A relative bias by projection: the query's input says how much it wants of each curve.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + \sum_{r=1}^{R} (W x_i + b)_{h,r}\, C_{r,\,p_i - p_j}, \quad
              C_{r,n} = 0 \text{ for } n \ge M

    The curves C are shared by the heads; each layer has its own C, W and b. There is no paper: the equation is
    that of the published code, which draws C small so that the bias starts near zero.
    """

    name = "rel_proj"
    family = Family.CONTEXT
    reference = "Inkling (Thinking Machines) 2026, as RelativeProjPositionalBias in x-transformers"
    year = 2026
    sees = Sees.DISTANCE
    fractional = False

    class Options(EncodingOptions):
        basis: int = Field(default=16, ge=1, le=1024)
        """R: the number of curves."""
        max_distance: PositiveInt | None = Field(default=None, le=2**20)
        """M: from this distance on there is no bias. None: the training length; beyond it the curves would stay as
        they were drawn. The published code has 1024."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.length = options.max_distance or spec.train_length
        limit = spec.d_model**-0.5
        shape = (spec.n_layers, spec.n_heads, options.basis)
        self.weight = nn.Parameter(torch.empty(*shape, spec.d_model).uniform_(-limit, limit))
        self.offset = nn.Parameter(torch.empty(shape).uniform_(-limit, limit))
        self.curves = nn.Parameter(torch.empty(spec.n_layers, options.basis, self.length).normal_(std=0.02))

    def prepare(self, layer: LayerView) -> Tensor:
        """How much each character wants of each curve, (B, H, T, R)."""
        wanted = F.linear(layer.x, self.weight[layer.index].flatten(0, 1), self.offset[layer.index].flatten())
        return wanted.unflatten(-1, (self.spec.n_heads, -1)).transpose(1, 2)

    def bias(self, block: Block) -> Tensor:
        wanted: Tensor = block.state[:, :, block.queries]
        curves = F.pad(self.curves[block.layer.index], (0, 1))  # (R, M + 1), with the zero of all far keys
        falling = falling_distances(block.layer)
        if falling is not None and is_run(block):
            column = falling[-1 - block.k.shape[2] :].clamp(max=self.length).long()
            return skewed(wanted @ curves.index_select(1, column))
        count = far_keys(block.distance, self.length)
        column = block.distance[:, None, :, count:].clamp(0, self.length).long()
        near = (wanted @ curves).gather(-1, column.expand(*wanted.shape[:3], -1))
        return F.pad(near, (count, 0))
