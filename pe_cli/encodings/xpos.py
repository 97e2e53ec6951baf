"""xpos: rope with keys that fade with distance, each pair of columns at its own rate."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from pe_cli.encodings._rotary import (
    Layout,
    Rotary,
    RotaryOptions,
    angles,
    inverse_frequencies,
    require_even_head,
    turned,
)
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView
from pe_cli.errors import PositionRangeError, refused

LARGEST_EXPONENT = 75.0
"""e^75 times a product of vectors is still a number of float32 or bfloat16; e^89 alone is none."""


@register
class XPos(Rotary):
    r"""Extrapolatable position embedding.

    .. math:: s_{ij} = (R_{p_i} \zeta^{(p_i - c)/s} q_i) \cdot (R_{p_j} \zeta^{-(p_j - c)/s} k_j) / \sqrt{d}, \quad
              \zeta_k = (2k/d + \gamma) / (1 + \gamma), \quad \theta_k = b^{-2k/d}

    The product of the two factors is :math:`\zeta_k^{(p_i - p_j)/s}` whatever c is: a function of the distance.
    Each factor by itself would leave the range of float32, so c is the middle of the ids of a window; as in the
    released code, 0, 1, … T − 1 have the middle T / 2, rounded up. That leaves room for ids that spread over
    about 60 s, or 30,000 with the default; wider ones are refused. The paper evaluates long texts with attention
    to the query's own block and the one before only, which is a mask and no part of this.
    """

    name = "xpos"
    reference = "Sun et al. 2022, arXiv:2212.10554"
    year = 2022

    class Options(RotaryOptions):
        layout: Layout = "interleaved"
        """interleaved: columns 2k and 2k + 1 are a pair, as in the released code; halves: columns k and k + d/2."""
        scale_base: PositiveFloat = 512.0
        """s: the number of ids over which pair k fades by ζ_k."""
        gamma: float = Field(default=0.4, gt=0)
        """γ: the first pair, which fades most, has ζ = γ / (1 + γ)."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        require_even_head(spec)
        super().__init__(options, spec, inverse_frequencies(spec.d_head, options.base), options.layout)
        self.zeta = tuple(
            (2 * pair / spec.d_head + options.gamma) / (1 + options.gamma) for pair in range(spec.d_head // 2)
        )
        self.rates = tuple(math.log(zeta) / options.scale_base for zeta in self.zeta)
        if self.too_wide(spec.max_position - 1):
            least = (spec.max_position - 1) * -math.log(self.zeta[0]) / LARGEST_EXPONENT
            raise refused(
                "scale_base",
                f"{options.scale_base:g} with gamma {options.gamma:g} is too small for ids "
                f"up to {spec.max_position - 1}, whose factors would not be numbers any more; {math.ceil(least)} or "
                "more would do",
            )

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        ids = layer.positions.ids
        first, last = ids.amin(dim=-1, keepdim=True), ids.amax(dim=-1, keepdim=True)
        spread = float((last - first).max())
        if self.too_wide(spread):
            raise PositionRangeError(
                f"xpos with scale_base {self.options.scale_base:g} has no numbers for ids {spread:g} apart"
            )
        centre = ((first + last + 1) / 2).ceil()
        factor = angles(ids - centre, self.rates)[:, None].exp()  # (B or 1, 1, T, pairs)
        angle = angles(ids, self.frequencies)[:, None]
        cos, sin = angle.cos(), angle.sin()

        def scaled(x: Tensor, factor: Tensor) -> Tensor:
            return turned(x, (cos * factor).to(x.dtype), (sin * factor).to(x.dtype), self.layout)

        return scaled(layer.q, factor), scaled(layer.k, 1 / factor)

    def too_wide(self, spread: float) -> bool:
        return -self.rates[0] * spread > LARGEST_EXPONENT

    def numbers(self, length: int) -> dict[str, Tensor]:
        return super().numbers(length) | {"zeta": torch.tensor(self.zeta, dtype=torch.float64)}
