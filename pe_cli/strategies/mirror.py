"""mirror: the trained ids forwards, backwards, and forwards again."""

from __future__ import annotations

from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import require_absolute
from pe_cli.strategies.registry import Strategy, register


@register
class Mirror(Strategy):
    r"""The trained ids go up to L − 1, back down to 0, and up again.

    .. math:: p' = |m - (L - 1)|, \quad m = (p + L - 1) \bmod 2 (L - 1)

    Neighbours have neighbouring ids everywhere, where `wrap` has a seam every L characters; but on the way back
    they stand in an order that training never showed. The ends come once a turn, not twice.
    """

    name = "mirror"
    reference = "a control without a paper of its own, 2026"
    needs = "absolute ids"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_absolute(self.name, encoding)
        last = train_length - 1

        def reflected(positions: Positions) -> Positions:
            return Positions(((positions.ids + last).remainder(max(1, 2 * last)) - last).abs())

        return Renumbered(encoding, reflected)
