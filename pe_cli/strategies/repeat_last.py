"""repeat_last: all characters beyond the trained length carry the last trained id."""

from __future__ import annotations

from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import require_absolute
from pe_cli.strategies.registry import Strategy, register


@register
class RepeatLast(Strategy):
    r"""Characters beyond the trained length L carry the last trained id.

    .. math:: p' = \min(p, L - 1)
    """

    name = "repeat_last"
    reference = "common practice without a paper of its own"
    needs = "absolute ids"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_absolute(self.name, encoding)
        return Renumbered(encoding, lambda positions: Positions(positions.ids.clamp(max=train_length - 1)))
