"""factored: a learned vector for the row and one for the column of an id, both added to the embeddings."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._tables import between, refuse_beyond
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions


@register
class Factored(PositionEncoding):
    r"""The attention embeddings of the Sparse Transformer: the text is written in rows of l characters.

    .. math:: x_p = E[t_p] + R[\lfloor p / l \rfloor] + C[p \bmod l]

    It is a learned table of :math:`\lceil L / l \rceil\,l` ids with far fewer parameters. As in any learned table an
    id between two whole numbers lies on the line between theirs, though the paper has whole ids only. Columns
    come back with every row, but no row is known beyond the last: PositionRangeError. The paper pairs it with
    masks of the same stride.
    """

    name = "factored"
    family = Family.ABSOLUTE
    reference = "Child et al. 2019, arXiv:1904.10509 (attention embeddings)"
    year = 2019
    sees = Sees.ABSOLUTE

    class Options(EncodingOptions):
        stride: PositiveInt | None = None
        """l: how many characters make a row. None: the square root of the training length, rounded up."""
        init_std: PositiveFloat | None = None
        """Standard deviation of both tables before training. None: the paper's 0.125 / √(2 D)."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.stride = options.stride or math.isqrt(spec.train_length - 1) + 1
        std = options.init_std or 0.125 / math.sqrt(2 * spec.d_model)
        # no more columns than training has ids: further ones would never be trained
        shape = (math.ceil(spec.max_position / self.stride), min(self.stride, spec.max_position))
        self.rows, self.columns = (nn.Parameter(torch.empty(n, spec.d_model).normal_(std=std)) for n in shape)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        last = len(self.rows) * len(self.columns) - 1
        refuse_beyond(positions.ids, last, f"the factored table has {len(self.rows)} rows of {len(self.columns)}")
        return x + between(positions.ids, last, self.row)

    def row(self, whole: Tensor) -> Tensor:
        """What is added at ids that are whole numbers."""
        return F.embedding(whole // self.stride, self.rows) + F.embedding(whole % self.stride, self.columns)

    def trained_length(self, train_length: int) -> int:
        return super().trained_length(self.spec.max_position)

    def numbers_at(self, positions: Positions) -> dict[str, Tensor]:
        """The row and the column of each character's id; an id between two whole ones has several."""
        ids = positions.ids[0]
        if not torch.equal(ids, ids.round()):
            return {}
        return {"row_of_id": ids.long() // self.stride, "column_of_id": ids.long() % self.stride}
