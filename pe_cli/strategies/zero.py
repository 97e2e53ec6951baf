"""zero: nothing is added beyond the trained length."""

from __future__ import annotations

from torch.nn import functional as F

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._extended import Extended, require_table
from pe_cli.strategies.registry import Strategy, register


@register
class Zero(Strategy):
    r"""Characters beyond the trained length L are told nothing of where they are.

    .. math:: e_p = 0 \text{ for } p \ge L

    It shows what the rows of the other strategies are worth.
    """

    name = "zero"
    reference = "a control without a paper of its own, 2026"
    needs = "a table, or a function of the id, that is added to the embeddings"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_table(self.name, encoding)
        return Extended(encoding, train_length, lambda rows: F.pad(rows, (0, 0, 0, length - len(rows))))
