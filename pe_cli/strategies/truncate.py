"""truncate: the window is cut to the training length before the model sees it."""

from __future__ import annotations

import copy

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies.registry import Strategy, register


@register
class Truncate(Strategy):
    r"""Only the last L characters are shown: the baseline that every strategy must beat.

    .. math:: \text{loss}_T = \text{loss}_L \text{ on the same characters}

    Under same_targets that holds by construction, to the last bit: the row repeats the loss at the training length,
    and a strategy has used a longer context where it is below this one. Where more than L characters are scored, as
    with non_overlapping windows and in the answers of tasks, the window is cut from its end into pieces of L, each
    read by itself: there the first characters of a piece have less context than L.
    """

    name = "truncate"
    reference = "the baseline of a truncated context, without a paper of its own"
    needs = "nothing"
    whole = True

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        changed = copy.copy(encoding)
        changed.piece = train_length
        return changed
