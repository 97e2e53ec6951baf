"""random: random rows like the trained ones beyond the trained length."""

from __future__ import annotations

import torch
from pydantic import NonNegativeInt
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._extended import Extended, beyond, require_table
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Random(Strategy):
    r"""Rows beyond the trained length L are drawn with the mean and variance of the trained ones.

    .. math:: e_{p,c} \sim N(\mu_c, \sigma_c^2) \text{ for } p \ge L

    μ and σ² are those of column c over the L trained rows. Rows are drawn one after the other from one seed, so
    row p is the same whatever the length. Longformer's table of copies is compared with such rows.
    """

    name = "random"
    reference = "Beltagy, Peters and Cohan 2020, arXiv:2004.05150 (the baseline of its table of copies)"
    needs = "a table, or a function of the id, that is added to the embeddings"

    class Options(StrategyOptions):
        seed: NonNegativeInt = 0
        """Of the draw."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_table(self.name, encoding)
        more = length - train_length

        def drawn(rows: Tensor) -> Tensor:
            generator = torch.Generator().manual_seed(self.options.seed)
            # row by row: a draw of many numbers at once depends on how many they are
            normal = torch.stack([torch.randn(rows.shape[1], generator=generator) for _ in range(more)])
            deviation, mean = torch.std_mean(rows, dim=0, correction=0)
            return mean + deviation * normal.to(rows)

        return Extended(encoding, train_length, beyond(length, drawn))
