"""shifted: every training window starts at an id of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from pydantic import NonNegativeInt, PositiveInt

from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.views import Positions
from pe_cli.errors import refused
from pe_cli.samplers.base import Sampler
from pe_cli.samplers.registry import register
from pe_cli.schema import Section


@register
class Shifted(Sampler):
    r"""Shifted absolute positions (SHAPE): one random number for each window is added to all of its ids.

    .. math:: p_t = t + k, \quad k \sim U\{0, \dots, K - 1\}

    An encoding that sees distances alone is trained as without it. Distances beyond the training window stay
    unseen, ids beyond it do not.
    """

    name = "shifted"
    reference = "Kiyono et al. 2021, arXiv:2109.05644"

    class Options(Section):
        shifts: PositiveInt = 500
        """K: the number of different shifts."""
        start: NonNegativeInt = 0
        """The id of the first character in evaluation. The released code has K, which is one more than training shows:
        the last character of a window then has an untrained id, and a learned table a row for it."""

    def __init__(self, options: Any, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        if options.start > options.shifts:
            text = f"must be at most shifts {options.shifts}, not {options.start}"
            raise refused("start", f"{text}: training shows no window that starts there")

    def ids(self) -> int:
        return int(self.window + max(self.options.shifts - 1, self.options.start))

    def trained_ids(self) -> int:
        return int(self.window + self.options.shifts - 1 - self.options.start)

    def first_id(self) -> float:
        return float(self.options.start)

    def drawn(self, batch: int, length: int, generator: torch.Generator) -> Positions:
        shift = torch.randint(self.options.shifts, (batch, 1), generator=generator)
        sequential = Positions.sequential(length)
        return replace(sequential, ids=sequential.ids + shift)

    def evaluated(self, places: Positions, draw: int) -> Positions:
        return replace(places, ids=places.ids + self.options.start) if self.options.start else places
