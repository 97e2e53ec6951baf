"""wrap: the trained ids over and over."""

from __future__ import annotations

from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import require_absolute
from pe_cli.strategies.registry import Strategy, register


@register
class Wrap(Strategy):
    r"""The trained ids 0 … L − 1 are used over and over.

    .. math:: p' = p \bmod L

    The step from L − 1 back to 0 was never trained: losses rise there.
    """

    name = "wrap"
    reference = "Beltagy, Peters and Cohan 2020, arXiv:2004.05150 (section 5: copies of a learned table)"
    needs = "absolute ids"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_absolute(self.name, encoding)
        return Renumbered(encoding, lambda positions: Positions(positions.ids.remainder(train_length)))
