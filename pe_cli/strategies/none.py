"""none: the encoding as it was trained."""

from __future__ import annotations

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies.registry import register


@register(reference="the encoding's own behaviour", needs="nothing")
def none(encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
    """Nothing is changed: a learned table is undefined beyond its rows, all else goes on by its formula.

    .. math:: p' = p
    """
    return encoding
