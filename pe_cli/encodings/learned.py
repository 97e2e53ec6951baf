"""learned: one free vector for each id, added to the embeddings."""

from __future__ import annotations

import torch
from pydantic import NonNegativeFloat
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._tables import between, refuse_beyond
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions


@register
class Learned(PositionEncoding):
    r"""A learned table with a row for each id that training can show.

    .. math:: x_p = E[t_p] + (1 - f)\,W[\lfloor p \rfloor] + f\,W[\lfloor p \rfloor + 1], \quad
              f = p - \lfloor p \rfloor

    An id between two whole numbers lies on the line between their rows; the papers have whole ids only.
    Beyond the last row the table says nothing, and to ask for it raises PositionRangeError.
    """

    name = "learned"
    family = Family.ABSOLUTE
    reference = "Gehring et al. 2017, arXiv:1705.03122; Radford et al. 2019 (GPT-2)"
    year = 2017
    sees = Sees.ABSOLUTE

    class Options(EncodingOptions):
        init_std: NonNegativeFloat = 0.02
        """Standard deviation of the entries before training, as in GPT-2."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.table = nn.Parameter(torch.empty(spec.max_position, spec.d_model).normal_(std=options.init_std))

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        last = len(self.table) - 1
        refuse_beyond(positions.ids, last, f"the learned table has {len(self.table)} rows")
        return x + between(positions.ids, last, lambda whole: F.embedding(whole, self.table))

    def trained_length(self, train_length: int) -> int:
        return super().trained_length(len(self.table))
