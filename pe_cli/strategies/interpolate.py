"""interpolate: the ids of a longer window, squeezed into the trained range."""

from __future__ import annotations

from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import PositionEncoding, precise
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import refusal, require_ids
from pe_cli.strategies.registry import register


@register(
    reference="Chen et al. 2023, arXiv:2306.15595 (position interpolation)",
    needs="ids, and a meaning of ids between whole numbers",
)
def interpolate(encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
    r"""All ids of a window of T characters are squeezed evenly into the trained range 0 … L − 1.

    .. math:: p' = p\,(L - 1) / (T - 1)

    First goes to first and last to last, as in linear interpolation of a table with aligned corners. For rope
    it is position interpolation, where the paper writes :math:`p\,L / T`; for alibi it flattens the slopes.
    """
    require_ids("interpolate", encoding)
    if not encoding.fractional:
        raise refusal("interpolate", encoding, "ids between whole numbers mean nothing to it")

    def squeezed(positions: Positions) -> Positions:
        # multiplied before it is divided: the last id comes out as L − 1, not one rounding above it
        ids = precise(positions.ids) * (train_length - 1) / (length - 1)
        step = None if positions.step is None else positions.step * (train_length - 1) / (length - 1)
        return Positions(ids.to(positions.ids.dtype), step)

    return Renumbered(encoding, squeezed)
