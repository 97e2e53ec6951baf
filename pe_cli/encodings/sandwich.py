"""sandwich: the product of two sinusoidal tables as a bias, without anything to learn."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings._distance import at_distinct
from pe_cli.encodings._rotary import angles
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView


@register
class Sandwich(PositionEncoding):
    r"""What the products of sinusoidal embeddings among each other leave of them, as a bias.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + \frac{1}{c_h} \Big( \sum_{k=1}^{D/2}
              \cos\big((p_i - p_j)\,b^{-2k/D}\big) - D/2 \Big), \quad c_h = 8h/H, \quad h = 1 \dots H

    It falls about as the logarithm of the distance, in ripples, from 0 at the query itself, and is never
    above that. The first head falls most steeply. The frequencies count from k = 1, those of a sinusoidal
    table from 0. D is a number of its own (128, for heads of any size); the code of one library takes the
    size of a head instead.
    """

    name = "sandwich"
    family = Family.BIAS
    reference = "Chi et al. 2023, arXiv:2212.10356"
    year = 2023
    sees = Sees.DISTANCE

    class Options(EncodingOptions):
        dimensions: int = Field(default=128, ge=2, le=4096, multiple_of=2)
        """D: half as many cosines are added. The deepest possible bias of head h is −D / c."""
        base: float = Field(default=10000.0, ge=1)
        """b: the slowest cosine comes back to its start after 2πb ids."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        width = options.dimensions
        self.frequencies = tuple(options.base ** (-2 * k / width) for k in range(1, width // 2 + 1))
        self.compressions = tuple(8 * head / spec.n_heads for head in range(1, spec.n_heads + 1))

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        return at_distinct(distance, self.bias_at).to(layer.x.dtype)

    def bias_at(self, distance: Tensor) -> Tensor:
        """(H, n) at the distances (n,), in float64."""
        fall = (angles(distance, self.frequencies).cos() - 1).sum(dim=-1)
        return fall / torch.tensor(self.compressions, dtype=fall.dtype, device=fall.device)[:, None]

    def numbers(self, length: int) -> dict[str, Tensor]:
        wavelengths = 2 * math.pi / torch.tensor(self.frequencies, dtype=torch.float64)
        return {"compressions": torch.tensor(self.compressions, dtype=torch.float64), "wavelengths": wavelengths}
