"""mean: the mean of the trained rows beyond the trained length."""

from __future__ import annotations

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._extended import Extended, beyond, require_table
from pe_cli.strategies.registry import Strategy, register


@register
class Mean(Strategy):
    r"""Characters beyond the trained length L all get the mean of the trained rows.

    .. math:: e_p = \frac{1}{L} \sum_{r < L} e_r \text{ for } p \ge L

    It keeps the part that all rows have in common, and says nothing of the place.
    """

    name = "mean"
    reference = "a control without a paper of its own, 2026"
    needs = "a table, or a function of the id, that is added to the embeddings"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_table(self.name, encoding)
        more = length - train_length
        return Extended(encoding, train_length, beyond(length, lambda rows: rows.mean(dim=0).expand(more, -1)))
