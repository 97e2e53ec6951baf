"""fire: a learned function of the distance, measured against how much text the query has before it."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._distance import Network, in_pieces
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, Width
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block

SMALLEST = 1e-6
"""Added to the divisor, as published: a threshold that comes to 0 gives no 0/0 at id 0."""


@register
class FIRE(PositionEncoding):
    r"""Functional interpolation for relative positions.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + f_h\!\left(
              \frac{\psi(p_i - p_j)}{\psi(\max(p_i,\ |m L|)) + 10^{-6}} \right), \quad \psi(x) = \ln(1 + |c\,x|)

    The argument of f stays within 0 and 1 at any length, as long as ids count from 0. f is an MLP with one
    hidden layer of ReLUs; c and m are learned with it, L is fixed. Each layer has its own f, c and m; FIRE-S
    has one for all (`layers: shared`). Published: L = 512, for training on 2048. In rows before the threshold
    the divisor is constant, so with L at the training length or above it, training would show f nothing of
    the interpolation that it needs later. The id of the query counts, so ids are not seen as distances only.
    The MLP has no last bias, which would raise all logits of a head alike.
    """

    name = "fire"
    family = Family.BIAS
    reference = "Li et al. 2024, arXiv:2310.04418"
    year = 2024
    sees = Sees.ABSOLUTE

    class Options(EncodingOptions):
        threshold: PositiveFloat | None = None
        """L, where m starts at 1. None: a quarter of the training length, the ratio of the paper."""
        scale: PositiveFloat = 0.1
        """c before training."""
        width: Width = 32
        """Hidden units of f."""
        layers: Literal["own", "shared"] = "own"
        """own: each layer has its own f, c and m; shared: one for all, which is FIRE-S."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        sets = spec.n_layers if options.layers == "own" else 1
        self.threshold = options.threshold or spec.train_length / 4
        self.network = Network(sets, spec.n_heads, options.width, hidden_layers=1, activation=F.relu)
        self.scale = nn.Parameter(torch.full((sets,), options.scale))
        self.multiplier = nn.Parameter(torch.ones(sets))

    def bias(self, block: Block) -> Tensor:
        own = block.layer.index if self.options.layers == "own" else 0
        scale, threshold = self.scale[own], (self.multiplier[own] * self.threshold).abs()
        ids = block.layer.positions.ids[:, block.queries, None].to(scale.dtype)
        distance = block.distance.clamp(min=0).to(scale.dtype)
        share = psi(distance, scale) / (psi(torch.maximum(ids, threshold), scale) + SMALLEST)  # (B or 1, Q, K)
        flat = in_pieces(share.flatten(), lambda shares: self.network(own, shares))
        return flat.unflatten(-1, share.shape).movedim(0, 1)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"thresholds": (self.multiplier.detach() * self.threshold).abs(), "scales": self.scale.detach().abs()}


def psi(x: Tensor, scale: Tensor) -> Tensor:
    return torch.log1p((scale * x).abs())
