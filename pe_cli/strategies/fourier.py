"""fourier: waves fitted to the trained rows go on beyond the trained length."""

from __future__ import annotations

import math

import torch
from pydantic import NonNegativeFloat, NonNegativeInt
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._extended import Extended, beyond, require_table
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Fourier(Strategy):
    r"""Waves that repeat every L ids are fitted to the trained rows by least squares, and go on beyond them.

    .. math:: e_p = \sum_{k=0}^{K} a_k \cos(2 \pi k p / L) + b_k \sin(2 \pi k p / L) \text{ for } p \ge L, \quad
              \min_{a, b} \sum_{r < L} |e_r - \hat e_r|^2 + \lambda L (|a|^2 + |b|^2)

    The harmonics are whole numbers, which makes the waves orthogonal on the trained ids and the result a smooth
    `wrap`; with all of them and λ = 0 it is `wrap`. With waves of other lengths, columns of the fit are nearly
    dependent: huge coefficients of opposite sign cancel on the trained ids and nowhere else, and the curve
    explodes beyond them, as figure 2 of the paper shows. Trained rows stay as they are.
    """

    name = "fourier"
    reference = "Chen et al. 2023, arXiv:2306.15595 (the fit of its figure 2)"
    needs = "a table, or a function of the id, that is added to the embeddings"

    class Options(StrategyOptions):
        harmonics: NonNegativeInt | None = None
        """K, at most L / 2. None: L / 4."""
        ridge: NonNegativeFloat = 0.001
        """λ."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_table(self.name, encoding)
        stated, most = self.options.harmonics, train_length // 2
        count = train_length // 4 if stated is None else min(stated, most)

        def waves(rows: Tensor) -> Tensor:
            ids = torch.arange(length, dtype=torch.float64)
            angle = ids[:, None] * (2 * math.pi / train_length * torch.arange(count + 1, dtype=torch.float64))
            sines = angle[:, 1 : (train_length + 1) // 2].sin()  # at L / 2 the sine is zero at all ids
            basis = torch.cat((angle.cos(), sines), dim=1)
            known, wanted = basis[:train_length], basis[train_length:]
            penalty = self.options.ridge * train_length * torch.eye(basis.shape[1], dtype=torch.float64)
            found = torch.linalg.solve(known.T @ known + penalty, known.T @ rows.detach().cpu().double())
            return (wanted @ found).to(rows)

        return Extended(encoding, train_length, beyond(length, waves))
