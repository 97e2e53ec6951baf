"""kerple_log: a penalty on the logits that grows with the logarithm of distance, at learned rates."""

from __future__ import annotations

import torch
from torch import Tensor

from pe_cli.encodings._distance import bounded, within
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView

SMALLEST = 0.01


@register
class KerpleLog(PositionEncoding):
    r"""The logarithmic kernel of KERPLE.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} - r_1 \ln(1 + r_2 (p_i - p_j)), \quad r_1, r_2 > 0

    Each head has its own :math:`r_1` and :math:`r_2`; as in the published code, one pair serves all layers.
    They are stored as they are and used as max(r, 0.01), which is what that code computes. It overwrites the
    stored number with the bound; here the number stays, and a gradient that leads back above the bound
    reaches it (one that leads further down does not). They start uniform in (0, 2) and (0, 1).
    """

    name = "kerple_log"
    family = Family.BIAS
    reference = "Chi et al. 2022, arXiv:2205.09921"
    year = 2022
    sees = Sees.DISTANCE

    def __init__(self, options: EncodingOptions, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.r1 = bounded(torch.empty(spec.n_heads).uniform_(0, 2), SMALLEST)
        self.r2 = bounded(torch.empty(spec.n_heads).uniform_(0, 1), SMALLEST)

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        r1, r2 = self.positive()
        return -r1[:, None] * torch.log1p(r2[:, None] * distance)

    def positive(self) -> tuple[Tensor, Tensor]:
        """r₁ and r₂ of each head, as they are used."""
        return within(self.r1, SMALLEST), within(self.r2, SMALLEST)

    def numbers(self, length: int) -> dict[str, Tensor]:
        r1, r2 = self.positive()
        return {"r1": r1.detach(), "r2": r2.detach()}
