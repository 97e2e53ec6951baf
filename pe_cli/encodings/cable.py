"""cable: each character says how much farther away it puts all that is before it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._relative import sum_between
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, precise
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView


@register
class Cable(PositionEncoding):
    r"""Context-aware biases for length extrapolation.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} - \sum_{t=j+1}^{i} \mathrm{softplus}(w_h \cdot x_t + b_h)

    alibi with distances that are read from the text, and fox with the opposite sign of w and b. The released code
    does not divide q·k by √d: it writes √(C / n_embd), which is 1. Here it is divided, as with every other encoding.
    """

    name = "cable"
    family = Family.CONTEXT
    reference = "Veisi, Amirzadeh and Mansourian 2025, arXiv:2503.08067"
    year = 2025
    sees = Sees.NOTHING

    class Options(EncodingOptions):
        start: float = 0.0
        """b before training. At 0, as in the released code, a weight fades by half with each character; at −5, by
        half over 103."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        # as the released code draws all of its weights
        self.weight = nn.Parameter(torch.empty(spec.n_layers, spec.n_heads, spec.d_model).normal_(std=0.02))
        self.increment_bias = nn.Parameter(torch.full((spec.n_layers, spec.n_heads), options.start))

    def prepare(self, layer: LayerView) -> Tensor:
        """Sums of the steps down to each character (B, H, T), in float64 as they grow with the text."""
        steps = -F.softplus(F.linear(layer.x, self.weight[layer.index], self.increment_bias[layer.index]))
        return precise(steps.transpose(1, 2)).cumsum(dim=-1)

    def bias(self, block: Block) -> Tensor:
        return sum_between(block.state, block)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"increments": -F.softplus(self.increment_bias.detach())}
