"""fox: forget gates, computed from the text, that fade out far keys."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._relative import sum_between
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, precise
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView


@register
class FoX(PositionEncoding):
    r"""Forgetting attention: each character says how much of everything before it is kept.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + c_i - c_j, \quad c_i = \sum_{t=0}^{i} \ln f_t, \quad
              f_t = \sigma(w_h \cdot x_t + b_h)

    The gate of the key itself does not count. Ids are not looked at: the order of the text is all there is.
    """

    name = "fox"
    family = Family.CONTEXT
    reference = "Lin et al. 2025, arXiv:2503.02130"
    year = 2025
    sees = Sees.NOTHING

    class Options(EncodingOptions):
        gate_bias: float = 5.0
        """b before training. At 5 a gate is 0.993 and a weight fades by half over 103 characters, so that a
        short training window is in reach from the start; at 0 it fades by half with each character."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        limit = spec.d_model**-0.5
        weight = torch.empty(spec.n_layers, spec.n_heads, spec.d_model).uniform_(-limit, limit)
        self.weight = nn.Parameter(weight)
        self.gate_bias = nn.Parameter(torch.full((spec.n_layers, spec.n_heads), options.gate_bias))

    def prepare(self, layer: LayerView) -> Tensor:
        """c (B, H, T): sums of the log gates up to each character, in float64 as they grow with the text."""
        gates = F.logsigmoid(F.linear(layer.x, self.weight[layer.index], self.gate_bias[layer.index]))
        return precise(gates.transpose(1, 2)).cumsum(dim=-1)

    def bias(self, block: Block) -> Tensor:
        return sum_between(block.state, block)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"forget_gates": self.gate_bias.detach().sigmoid()}
