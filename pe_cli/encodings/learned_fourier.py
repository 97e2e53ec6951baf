"""learned_fourier: sines and cosines at learned frequencies, mixed by a small network, added to the embeddings."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings.base import (
    EncodingOptions,
    Family,
    ModelSpec,
    PositionEncoding,
    Sees,
    Width,
    precise,
)
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions


@register
class LearnedFourier(PositionEncoding):
    r"""Learnable Fourier features of the id, through a network with one hidden layer.

    .. math:: x_p = E[t_p] + \mathrm{GELU}(r_p W_1 + b_1)\,W_2 + b_2, \quad
              r_p = [\cos(p\,w), \sin(p\,w)] / \sqrt{F}, \quad w \sim N(0, \gamma^{-2})

    Before training, :math:`2\,r_p \cdot r_{p'}` is about :math:`e^{-(p - p')^2 / 2 \gamma^2}`: ids closer than γ look
    alike. The paper has ids of several axes; those of a text have one, and are not divided by the length. It does
    not say how the network is drawn: here so that what is added starts at about half the size of the embeddings,
    biases at zero.
    """

    name = "learned_fourier"
    family = Family.ABSOLUTE
    reference = "Li et al. 2021, arXiv:2106.02795"
    year = 2021
    sees = Sees.ABSOLUTE

    class Options(EncodingOptions):
        features: int = Field(default=128, ge=2, le=2**17, multiple_of=2)
        """F: the number of features, half of them cosines."""
        hidden: Width = 32
        """The width of the hidden layer."""
        gamma: PositiveFloat = 10.0
        """γ: frequencies are drawn with standard deviation 1 / γ."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        features, hidden, width = options.features, options.hidden, spec.d_model
        self.frequencies = nn.Parameter(torch.empty(features // 2).normal_(std=1 / options.gamma))
        self.first = nn.Parameter(torch.empty(features, hidden).normal_())
        self.first_bias = nn.Parameter(torch.zeros(hidden))
        self.second = nn.Parameter(torch.empty(hidden, width).normal_(std=hidden**-0.5))
        self.second_bias = nn.Parameter(torch.zeros(width))

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        angle = precise(positions.ids)[..., None] * precise(self.frequencies)
        features = torch.cat((angle.cos(), angle.sin()), dim=-1) / math.sqrt(self.options.features)
        hidden = F.gelu(features.to(self.first.dtype) @ self.first + self.first_bias)
        return x + (hidden @ self.second + self.second_bias).to(x.dtype)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"frequencies": self.frequencies, "wavelengths": 2 * math.pi / self.frequencies.abs()}
