"""cubic: a table resized by cubic curves through its rows."""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._extended import Extended, require_table
from pe_cli.strategies._ids import refusal
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Cubic(Strategy):
    r"""The trained rows are spread over the longer window, and cubic curves laid through them.

    .. math:: e'_p = \sum_{r} k(u - r)\,e_r, \quad u = p\,(L - 1) / (T - 1)

    k is the cubic kernel with a = −0.75, of the four nearest rows; beyond the ends of the table its first and its
    last row are repeated. It is how vision models resize a table of positions, with ends not aligned. All rows
    change, those below L too.
    """

    name = "cubic"
    reference = "Dosovitskiy et al. 2021, arXiv:2010.11929 (resized tables); Keys 1981 (the kernel)"
    needs = "a table, or a function of the id, that is added to the embeddings"

    class Options(StrategyOptions):
        places: Literal["ends", "centres"] = "ends"
        """ends: the formula above, first goes to first and last to last; centres: u = (p + 1/2) L / T − 1/2."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_table(self.name, encoding)
        if not encoding.fractional:
            raise refusal(self.name, encoding, "ids between whole numbers mean nothing to it")
        aligned = self.options.places == "ends"

        def resized(rows: Tensor) -> Tensor:
            image = rows.T[None, :, None]  # as channels of a picture of one line: (1, D, 1, L)
            longer = F.interpolate(image, size=(1, length), mode="bicubic", align_corners=aligned)
            return longer[0, :, 0].T

        return Extended(encoding, train_length, resized)
