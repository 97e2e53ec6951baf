"""none: the encoding as it was trained."""

from __future__ import annotations

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies.registry import Strategy, register


@register
class Nothing(Strategy):
    """Nothing is changed: a learned table is undefined beyond its rows, all else goes on by its formula.

    .. math:: p' = p
    """

    name = "none"
    reference = "the encoding's own behaviour"
    needs = "nothing"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        return encoding
