"""kerple_power: a penalty on the logits that grows with a learned power of distance."""

from __future__ import annotations

import torch
from torch import Tensor

from pe_cli.encodings._distance import bounded, within
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView

SMALLEST = 0.01
LARGEST_POWER = 2.0


@register
class KerplePower(PositionEncoding):
    r"""The power kernel of KERPLE; alibi is the power 1 with fixed slopes.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} - r_1 (p_i - p_j)^{r_2}, \quad r_1 > 0, \ 0 < r_2 \le 2

    Above the power 2 it is no longer a kernel in the sense of the paper. Each head has its own :math:`r_1` and
    :math:`r_2`; as in the published code, one pair serves all layers. They are stored as they are and used
    within their bounds, :math:`r_1 \ge 0.01` and :math:`0.01 \le r_2 \le 2`, which is what that code computes. It
    overwrites the stored number with the bound; here the number stays, and a gradient that leads back inside
    reaches it (one that leads further out does not). They start uniform in (0, 1) and (0, 2).
    """

    name = "kerple_power"
    family = Family.BIAS
    reference = "Chi et al. 2022, arXiv:2205.09921"
    year = 2022
    sees = Sees.DISTANCE

    def __init__(self, options: EncodingOptions, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.r1 = bounded(torch.empty(spec.n_heads).uniform_(0, 1), SMALLEST)
        self.r2 = bounded(torch.empty(spec.n_heads).uniform_(0, 2), SMALLEST, LARGEST_POWER)

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        r1, r2 = self.powers()
        return -r1[:, None] * distance ** r2[:, None]

    def powers(self) -> tuple[Tensor, Tensor]:
        """r₁ and r₂ of each head, as they are used."""
        return within(self.r1, SMALLEST), within(self.r2, SMALLEST, LARGEST_POWER)

    def numbers(self, length: int) -> dict[str, Tensor]:
        r1, r2 = self.powers()
        return {"r1": r1.detach(), "r2": r2.detach()}
