"""interpolate: the ids of a longer window, squeezed into the trained range."""

from __future__ import annotations

from typing import Literal

from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import PositionEncoding, precise
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import refusal, require_ids
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Interpolate(Strategy):
    r"""All ids of a window of T characters are squeezed evenly into the trained range 0 … L − 1.

    .. math:: p' = p\,(L - 1) / (T - 1)

    First goes to first and last to last, as in linear interpolation of a table with aligned corners. For rope
    it is position interpolation, where the paper writes :math:`p\,L / T`; for alibi it flattens the slopes.
    """

    name = "interpolate"
    reference = "Chen et al. 2023, arXiv:2306.15595 (position interpolation)"
    needs = "ids, and a meaning of ids between whole numbers"

    class Options(StrategyOptions):
        places: Literal["ends", "centres", "ratio"] = "ends"
        """ends: the formula above; centres: (p + 1/2) L / T − 1/2, cut off at 0 and L − 1, as tables are resized
        without aligned corners; ratio: p L / T, as the paper has it, which leads past the last row of a table."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_ids(self.name, encoding)
        if not encoding.fractional:
            raise refusal(self.name, encoding, "ids between whole numbers mean nothing to it")
        ends, places = self.options.places == "ends", self.options.places
        above, below = (train_length - 1, length - 1) if ends else (train_length, length)

        def squeezed(positions: Positions) -> Positions:
            # multiplied before it is divided: the last id comes out as L − 1, not one rounding above it
            ids = precise(positions.ids)
            if places == "centres":
                ids = ((ids + 0.5) * above / below - 0.5).clamp(0, train_length - 1)
                return Positions(ids.to(positions.ids.dtype))
            step = None if positions.step is None else positions.step * above / below
            return Positions((ids * above / below).to(positions.ids.dtype), step)

        return Renumbered(encoding, squeezed)
