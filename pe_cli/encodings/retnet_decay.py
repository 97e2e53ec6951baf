"""retnet_decay: the decay of RetNet's retention as a bias in softmax attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView


@register
class RetNetDecay(PositionEncoding):
    r"""Each character further away counts by a fixed factor less.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + (p_i - p_j) \ln \gamma_h, \quad
              \gamma_h = 1 - 2^{-5-h}, \quad h = 0 \dots H - 1

    Of RetNet this is the decay alone, and inside a softmax, where :math:`\gamma^n` multiplies
    :math:`e^{q \cdot k}`: alibi with other slopes. Retention has no softmax and multiplies the product q·k
    itself by :math:`\gamma^n`; it also turns queries and keys by their ids (`mix` with rope does), normalises
    each head and gates the output.
    """

    name = "retnet_decay"
    family = Family.BIAS
    reference = "Sun et al. 2023, arXiv:2307.08621"
    year = 2023
    sees = Sees.DISTANCE

    log_decays: Tensor

    def __init__(self, options: EncodingOptions, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        log_decays = [math.log1p(-(2.0 ** (-5 - head))) for head in range(spec.n_heads)]
        self.register_buffer("log_decays", torch.tensor(log_decays), persistent=False)

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        return self.log_decays[:, None] * distance

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"decays": self.log_decays.exp(), "slopes": -self.log_decays}
