"""What strategies ask of the ids of an encoding before they change them."""

from __future__ import annotations

from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.errors import StrategyRefused


def refusal(strategy: str, encoding: PositionEncoding, why: str) -> StrategyRefused:
    return StrategyRefused(f"{strategy} has no meaning for {encoding.name}: {why}")


def require_ids(strategy: str, encoding: PositionEncoding) -> None:
    """StrategyRefused unless the encoding uses ids that count the characters of the window."""
    if encoding.sees is Sees.NOTHING:
        raise refusal(strategy, encoding, "it uses no ids")
    if "positions" in encoding.hooks(0):
        why = "its ids are read from the text, so a longer window need not have ids that training lacked"
        raise refusal(strategy, encoding, why)


def require_absolute(strategy: str, encoding: PositionEncoding) -> None:
    """StrategyRefused unless an id by itself has a meaning."""
    require_ids(strategy, encoding)
    if encoding.sees is Sees.DISTANCE:
        why = "it sees only distances, and ids that repeat would make far characters look near"
        raise refusal(strategy, encoding, why)
