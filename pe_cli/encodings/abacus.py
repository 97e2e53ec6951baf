"""abacus: the place of each digit in its number, as a learned vector that is added to the embeddings."""

from __future__ import annotations

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._structure import among, places_in_runs
from pe_cli.encodings._tables import refuse_beyond
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions


@register
class Abacus(PositionEncoding):
    r"""Digits that stand at the same place of their numbers share a vector.

    .. math:: x_p = E[t_p] + W[a_p], \quad a_p = (p - s_p) + k \text{ for a digit}, \quad a_p = 0 \text{ otherwise},
              \quad s_p = \max\{r < p : t_r \text{ is no digit}\}

    Places are counted from the first digit of a run of digits on. Where numbers are written with the least
    significant digit first, as the paper does, that is the power of ten. Other characters all have the row 0,
    which is learned too: it takes a `mix` to tell them apart.

    k is 0 in evaluation and one random number from 0 to `max_offset` for each batch of training, so that rows
    beyond the longest number of the training text are trained too: up to its length + `max_offset`. Rows above are
    not, and digits beyond the last row are a PositionRangeError: set `longest` to the longest number of the
    training text, and no number is read with an untrained row. The paper has 1024 rows in any case, drawn with
    standard deviation 1.
    """

    name = "abacus"
    family = Family.STRUCTURAL
    reference = "McLeish et al. 2024, arXiv:2405.17399"
    year = 2024
    sees = Sees.ABSOLUTE
    fractional = False

    class Options(EncodingOptions):
        digits: str = Field(default="0123456789", min_length=1)
        """Each character of this text is a digit. Without any of them in a text, all ids are 0."""
        max_offset: NonNegativeInt = 99
        """The largest k of training. The table has as many rows more."""
        longest: PositiveInt | None = None
        """The longest run of digits that training may show. None: a whole window of them."""
        init_std: NonNegativeFloat = 0.02
        """Standard deviation of the entries before training."""

    is_digit: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        rows = 1 + (options.longest or spec.max_position) + options.max_offset
        self.table = nn.Parameter(torch.empty(rows, spec.d_model).normal_(std=options.init_std))
        self.register_buffer("is_digit", among(spec.alphabet, options.digits), persistent=False)

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        places = places_in_runs(self.is_digit[tokens])
        if generator is not None:
            offset = torch.randint(self.options.max_offset + 1, (), generator=generator, device=generator.device)
            places = torch.where(places > 0, places + offset, places)
        return Positions(places.float())

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        last = len(self.table) - 1
        refuse_beyond(positions.ids, last, f"the abacus table has {len(self.table)} rows")
        return x + F.embedding(positions.ids.long(), self.table)
