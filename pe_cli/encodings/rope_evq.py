"""rope_evq: rope with frequencies that are packed more densely at the high end."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings._rotary import Rotary, RotaryOptions, require_even_head
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.registry import register
from pe_cli.errors import refused

LARGEST_TAU = 700.0
"""sinh of more is no number of float64."""


@register
class RoPEEVQ(Rotary):
    r"""The EVQ-cosh schedule of frequencies.

    .. math:: s_{ij} = (R_{p_i} q_i) \cdot (R_{p_j} k_j) / \sqrt{d}, \quad \theta_k = b^{-\varphi_k}, \quad
              \varphi_k = 1 - \text{asinh}((1 - u_k) \sinh \tau) / \tau, \quad u_k = (2k + 1) / d

    As τ goes to 0, φ goes to u: rope, but for half a step on the published grid, where u is in the middle of
    each of the d/2 intervals. The work is published by its author and not reviewed.
    """

    name = "rope_evq"
    reference = "EVQ-cosh 2026, github.com/misaya-yang/hybrid-rope"
    year = 2026

    class Options(RotaryOptions):
        base: float = Field(default=500000.0, ge=1)
        """b: the slowest pair turns once in less than about 2πb ids."""
        tau: float | None = Field(default=None, ge=0, le=LARGEST_TAU)
        """τ: how uneven the schedule is. None: the published rule, d / √L with the training length L."""
        grid: Literal["midpoint", "left"] = "midpoint"
        """midpoint: u = (2k + 1) / d; left: u = 2k / d, with which τ = 0 is rope."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        require_even_head(spec)
        tau = spec.d_head / math.sqrt(spec.train_length) if options.tau is None else options.tau
        if tau > LARGEST_TAU:
            raise refused(
                "tau",
                f"heads of {spec.d_head} columns with training.length {spec.train_length} "
                f"give {tau:g}; state one of {LARGEST_TAU:g} or less",
            )
        shift = 1 if options.grid == "midpoint" else 0
        places = [(2 * pair + shift) / spec.d_head for pair in range(spec.d_head // 2)]
        super().__init__(options, spec, [options.base ** -exponent(u, tau) for u in places], options.layout)
        self.tau = tau

    def numbers(self, length: int) -> dict[str, Tensor]:
        return super().numbers(length) | {"tau": torch.tensor(self.tau, dtype=torch.float64)}


def exponent(u: float, tau: float) -> float:
    """φ at the place u of the grid."""
    return u if tau == 0 else 1 - math.asinh((1 - u) * math.sinh(tau)) / tau
