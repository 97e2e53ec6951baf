"""scaled: the ids of every training window are shifted, jittered and stretched."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings.views import Positions
from pe_cli.samplers.base import Sampler
from pe_cli.samplers.registry import register
from pe_cli.schema import Section


@register
class Scaled(Sampler):
    r"""Continuous augmented positions (CAPE): no two windows are counted in the same way.

    .. math:: p_t = \lambda\,(t + c + \Delta + \epsilon_t), \quad
              \Delta \sim U(-\Delta_{max}, \Delta_{max}), \quad
              \epsilon_t \sim U(-\epsilon_{max}, \epsilon_{max}), \quad
              \ln \lambda \sim U(-\ln \lambda_{max}, \ln \lambda_{max})

    Δ and λ are drawn for each window, ε for each character. Evaluation has t + c. Characters are counted from
    :math:`c = \Delta_{max} + \epsilon_{max}` so that no id is negative and a learned table can be trained too; the
    paper counts from 0, or for images and sound from the middle, which shifts all ids by one number.
    Ids lie between whole numbers: encodings for which those mean nothing are refused.
    """

    name = "scaled"
    reference = "Likhomanenko et al. 2021, arXiv:2106.03143"
    fractional = True

    class Options(Section):
        max_shift: Annotated[float, Field(ge=0, le=2**24)] = 5.0
        """Δ_max, in characters. This and the other defaults are those for text."""
        max_jitter: Annotated[float, Field(ge=0, le=0.5)] = 0.5
        """ε_max, in characters; at most one half, so that ids keep the order of the characters."""
        max_scale: Annotated[float, Field(ge=1, le=1000)] = 1.03
        """λ_max: ids are stretched at most by this factor, and squeezed at most by its inverse."""

    def first_id(self) -> float:
        return float(self.options.max_shift + self.options.max_jitter)

    def largest(self) -> float:
        return float(self.options.max_scale * (self.window - 1 + 2 * self.first_id()))

    def ids(self) -> int:
        return math.floor(self.largest()) + 2  # the row above the largest id: a rounding may reach it

    def trained_ids(self) -> int:
        return max(self.window, math.floor(self.largest() - self.first_id()) + 1)

    def trained_distances(self) -> int:
        return math.floor(self.options.max_scale * (self.window - 1)) + 1

    def drawn(self, batch: int, length: int, generator: torch.Generator) -> Positions:
        def uniform(most: float, columns: int) -> Tensor:
            return (2 * torch.rand(batch, columns, dtype=torch.float64, generator=generator) - 1) * most

        shift, jitter = uniform(self.options.max_shift, 1), uniform(self.options.max_jitter, length)
        scale = uniform(math.log(self.options.max_scale), 1).exp()
        ids = scale * (torch.arange(length) + self.first_id() + shift + jitter)
        return Positions(ids.clamp(min=0).float())  # rounding

    def evaluated(self, places: Positions, draw: int) -> Positions:
        return replace(places, ids=places.ids + self.first_id())
