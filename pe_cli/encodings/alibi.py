"""alibi: a penalty on the logits that grows linearly with distance."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView


@register
class ALiBi(PositionEncoding):
    r"""Attention with linear biases.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} - m_h (p_i - p_j)

    The slopes :math:`m_h` are fixed: a geometric sequence over the heads. The published code adds
    :math:`m_h p_j`, which softmax cannot tell apart but which loses the distances of far keys in half precision.
    The paper also tried to learn the slopes, and found that models then extrapolated less well.
    """

    name = "alibi"
    family = Family.BIAS
    reference = "Press, Smith and Lewis 2022, arXiv:2108.12409"
    year = 2022
    sees = Sees.DISTANCE

    class Options(EncodingOptions):
        max_exponent: PositiveFloat = 8.0
        """The last head of a power-of-two count gets the slope 2 ** -max_exponent."""
        slopes: Literal["fixed", "learned"] = "fixed"
        """learned: they start at the fixed ones and are trained as logarithms, one for each head in all layers."""

    slopes: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        slopes = torch.tensor(head_slopes(spec.n_heads, options.max_exponent))
        if options.slopes == "learned":
            self.log_slopes = nn.Parameter(slopes.log())
        else:
            self.register_buffer("slopes", slopes, persistent=False)

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        return -self.current()[:, None] * distance

    def current(self) -> Tensor:
        """The slope of each head."""
        return self.log_slopes.exp() if self.options.slopes == "learned" else self.slopes

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"slopes": self.current().detach()}


def head_slopes(n_heads: int, max_exponent: float) -> list[float]:
    """2^(−e h / H), h = 1..H, for a power of two H; else those of the next lower power of two, then every
    second one of twice that power."""
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2.0 ** (-max_exponent * head / power) for head in range(1, power + 1)]
    if power < n_heads:
        slopes += head_slopes(2 * power, max_exponent)[0::2][: n_heads - power]
    return slopes
