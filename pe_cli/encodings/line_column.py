"""line_column: the number of the line and the place in it, as sines and cosines added to the embeddings."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from pe_cli.encodings._rotary import angles, inverse_frequencies
from pe_cli.encodings._structure import among, segments
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions
from pe_cli.errors import refused


@register
class LineColumn(PositionEncoding):
    r"""A text as a page: half of the columns of the table tell the line, the other half the place in the line.

    .. math:: x_p = E[t_p] + [\,e_{g_p} \,|\, e_{o_p}\,], \quad e_{n,2k} = \sin(n\,\theta_k), \quad
              e_{n,2k+1} = \cos(n\,\theta_k), \quad \theta_k = b^{-2k/(D/2)},
    .. math:: g_p = |\{r < p : t_r = \text{newline}\}|, \quad o_p = |\{r < p : g_r = g_p\}|

    A newline belongs to the line that it ends. Both numbers count from 0 at the start of the window. The Image
    Transformer gives rows and columns of pixels half of the columns each, with sines or with learned vectors.
    Sines are used here because they need no end: the number of lines in a window and the length of a line have
    none. With an odd D the line has one column less.
    """

    name = "line_column"
    family = Family.STRUCTURAL
    reference = "Parmar et al. 2018, arXiv:1802.05751 (rows and columns of an image)"
    year = 2018
    sees = Sees.ABSOLUTE

    class Options(EncodingOptions):
        base: float = Field(default=10000.0, ge=1)
        """b: wavelengths of both halves run from 2π to about 2πb."""
        scale: PositiveFloat = 1.0
        """What the table is multiplied by."""

    ends: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        if spec.d_model < 2:
            raise refused("", "line and column need one column each; model.d_model: 2 would do")
        self.widths = (spec.d_model // 2, spec.d_model - spec.d_model // 2)
        self.frequencies = tuple(inverse_frequencies(width, options.base) for width in self.widths)
        self.register_buffer("ends", among(spec.alphabet, "\n"), persistent=False)

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        column, line = segments(self.ends[tokens])
        return Positions(torch.stack((line, column), dim=-1).float())

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        halves = []
        for axis, width in enumerate(self.widths):
            angle = angles(positions.ids[..., axis], self.frequencies[axis])
            halves.append(torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., :width])
        return x + (self.options.scale * torch.cat(halves, dim=-1)).to(x.dtype)

    def numbers(self, length: int) -> dict[str, Tensor]:
        axes = zip(("line", "column"), self.frequencies, strict=True)
        return {f"{axis}.wavelengths": 2 * math.pi / torch.tensor(f, dtype=torch.float64) for axis, f in axes}
