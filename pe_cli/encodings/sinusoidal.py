"""sinusoidal: sines and cosines of the id, added to the embeddings."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from pe_cli.encodings._rotary import angles, inverse_frequencies
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions


@register
class Sinusoidal(PositionEncoding):
    r"""The table of the original Transformer.

    .. math:: x_p = E[t_p] + c\,e_p, \quad e_{p,2k} = \sin(p\,\theta_k), \quad e_{p,2k+1} = \cos(p\,\theta_k),
              \quad \theta_k = b^{-2k/D}

    The paper multiplies embeddings by :math:`\sqrt{D}` before the sum, so that both terms have entries of
    size 1. Here embeddings are drawn with entries of size 1, which comes to the same, and `scale` is c.
    With an odd D the last frequency has a sine and no cosine.
    """

    name = "sinusoidal"
    family = Family.ABSOLUTE
    reference = "Vaswani et al. 2017, arXiv:1706.03762"
    year = 2017
    sees = Sees.ABSOLUTE

    class Options(EncodingOptions):
        base: float = Field(default=10000.0, ge=1)
        """b: wavelengths run from 2π to about 2πb."""
        scale: PositiveFloat = 1.0
        """c: what the table is multiplied by."""
        layout: Literal["interleaved", "concatenated"] = "interleaved"
        """interleaved: sine, cosine, sine, …; concatenated: all sines, then all cosines."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.frequencies = inverse_frequencies(spec.d_model, options.base)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        angle = angles(positions.ids, self.frequencies)
        if self.options.layout == "concatenated":
            table = torch.cat((angle.sin(), angle.cos()), dim=-1)
        else:
            table = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
        return x + (self.options.scale * table[..., : x.shape[-1]]).to(x.dtype)

    def numbers(self, length: int) -> dict[str, Tensor]:
        frequencies = torch.tensor(self.frequencies, dtype=torch.float64)
        return {"inverse_frequencies": frequencies, "wavelengths": 2 * math.pi / frequencies}
