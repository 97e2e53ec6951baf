"""skipped: a training window jumps once, so that its ids reach far beyond its length."""

from __future__ import annotations

import torch

from pe_cli.encodings.views import Positions
from pe_cli.samplers.base import Ranged
from pe_cli.samplers.registry import register


@register
class Skipped(Ranged):
    r"""Positional skip-wise training (PoSE) with two chunks: the second is u ids further than it would be.

    .. math:: p_t = t + u\,[t \ge c], \quad u \sim U\{0, \dots, M - T\}, \quad
              c \sim U\{1, \dots, \lfloor (T + 1) / 2 \rfloor\}

    Both are drawn for each window. Ids and distances reach M − 1, and characters next to each other keep a distance
    of 1 but for one pair. Evaluation counts from 0. As in the released code the first chunk starts at 0 and is the
    shorter one; there the text of the second chunk is taken from further on too, here it goes on where the first
    ends.
    """

    name = "skipped"
    reference = "Zhu et al. 2023, arXiv:2309.10400"

    def drawn(self, batch: int, length: int, generator: torch.Generator) -> Positions:
        first = torch.randint(1, (length + 1) // 2 + 1, (batch, 1), generator=generator)
        skip = torch.randint(self.ids() - length + 1, (batch, 1), generator=generator)
        index = torch.arange(length)
        return Positions((index + skip * (index >= first)).float())
