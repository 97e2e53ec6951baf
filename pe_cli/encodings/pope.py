"""pope: queries and keys say how much, by the size of each column, and ids alone say where, by its angle."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._distance import bounded, within
from pe_cli.encodings._rotary import Rotary, angles, inverse_frequencies
from pe_cli.encodings.base import EncodingOptions, ModelSpec
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView


@register
class PoPE(Rotary):
    r"""Polar coordinate position embedding.

    .. math:: s_{ij} = \sum_{k=0}^{d-1} \mu(q_{ik})\,\mu(k_{jk}) \cos((p_i - p_j)\,\theta_k - \delta_k) / \sqrt{d},
              \quad \mu = \text{softplus}, \quad \theta_k = b^{-k/d}, \quad -2\pi \le \delta_k \le 0

    Each column is a number in the plane with an angle of its own, where rope needs two columns for one angle; as
    vectors, queries and keys become 2d wide, and are still divided by :math:`\sqrt{d}`. The learned δ belong to
    the keys. They are used within their limits: beyond those, only a gradient that leads back inside gets through,
    where the published clamp stops both and a phase that has left zero upwards stays put. Each layer and head has
    its own here; one published version shares them among the layers.
    """

    name = "pope"
    reference = "Gopalakrishnan et al. 2025, arXiv:2509.10534"
    year = 2025

    class Options(EncodingOptions):
        base: float = Field(default=10000.0, ge=1)
        """b: the slowest column turns once in about 2πb ids."""
        initial_phase: Literal["zero", "uniform"] = "zero"
        """δ before training: all zero, or anywhere between its limits. The paper has either, by experiment."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, inverse_frequencies(2 * spec.d_head, options.base), "halves")
        phases = torch.zeros(spec.n_layers, spec.n_heads, spec.d_head)
        if options.initial_phase == "uniform":
            phases.uniform_(-2 * math.pi, 0)
        self.phases = bounded(phases, -2 * math.pi, 0)

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        angle = angles(layer.positions.ids, self.frequencies)[:, None]  # (B or 1, 1, T, d)
        phase = within(self.phases[layer.index], -2 * math.pi, 0)[:, None]  # (H, 1, d)
        return polar(F.softplus(layer.q), angle), polar(F.softplus(layer.k), angle + phase)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return super().numbers(length) | {"phases": self.phases.detach()}


def polar(size: Tensor, angle: Tensor) -> Tensor:
    """First the d real parts, then the d imaginary parts, of numbers with these sizes and angles."""
    return torch.cat((size * angle.cos().to(size.dtype), size * angle.sin().to(size.dtype)), dim=-1)
