"""hierarchical: rows for pairs of trained ids."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._extended import Extended, beyond, require_table
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Hierarchical(Strategy):
    r"""A row for each pair of trained ids: L rows reach L² characters.

    .. math:: e_{iL + j} = \alpha u_i + (1 - \alpha) u_j, \quad u = (e - \alpha e_0) / (1 - \alpha)

    The first L rows come out as trained. With α below a half, the pairs (i, j) and (j, i) differ, and the place
    within a group of L weighs more than the group. From L² on the table is at its end, and undefined.
    """

    name = "hierarchical"
    reference = "Su 2020, kexue.fm/archives/7947"
    needs = "a table, or a function of the id, that is added to the embeddings"

    class Options(StrategyOptions):
        alpha: float = Field(default=0.4, gt=0, lt=0.5)
        """α: what the group weighs."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_table(self.name, encoding)
        alpha, count = self.options.alpha, min(length, train_length**2)

        def pairs(rows: Tensor) -> Tensor:
            own = (rows - alpha * rows[0]) / (1 - alpha)
            group = torch.arange(1, -(-count // train_length), device=rows.device)
            return (alpha * own[group, None] + (1 - alpha) * own).flatten(0, 1)

        return Extended(encoding, train_length, beyond(count, pairs))
