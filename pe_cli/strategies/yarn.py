"""yarn: ntk_by_parts with sharper attention."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

from pydantic import Field, PositiveFloat, model_validator

from pe_cli.encodings._rotary import Rotary
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import StrategyRefused
from pe_cli.strategies._frequencies import blended, most_turns, ordered, ramp, rotation, scaling, tempered, turns
from pe_cli.strategies._ids import refusal
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class YaRN(Strategy):
    r"""Slow pairs are interpolated and fast ones are not, and all logits are multiplied by m².

    .. math:: \theta_k' = (1 - \gamma_k)\,\theta_k / s + \gamma_k \theta_k, \quad m = 0.1 \ln s + 1, \quad
              \gamma_k = \text{clip}\big((r_k - \beta_s) / (\beta_f - \beta_s), 0, 1\big), \quad
              r_k = L\,\theta_k / 2 \pi

    In the paper γ is linear in the number of turns, as here; in its code, and in what took over from it, it is
    linear in the number of the pair, between those that would make β turns: option `ramp`. The two differ much.
    β was tuned on models of 4096 ids: where training is so short that hardly a pair makes 32 turns, a smaller one
    takes its place. The code multiplies the columns that turn by m, the paper the logits by m².
    """

    name = "yarn"
    reference = "Peng et al. 2024, arXiv:2309.00071"
    needs = "a rotary encoding"

    class Options(StrategyOptions):
        factor: float | None = Field(default=None, ge=1)
        """s, for all lengths. None: T / L."""
        beta_slow: PositiveFloat = 1.0
        """With fewer turns in the trained length a pair is interpolated."""
        beta_fast: PositiveFloat | None = None
        """With more turns it stays as it is. None: the paper's 32, or √(L / 2π) if that is less, 4.5 for L = 128:
        half way, in octaves, from a pair that makes one turn to the fastest."""
        ramp: Literal["turns", "pairs", "unrounded_pairs"] = "turns"
        """Between the two: linear in the turns, as in the paper; or in the number of the pair, as in the code, where
        the first and the last of the ramp are rounded outwards to whole pairs."""
        attention_factor: PositiveFloat | None = None
        """m. None: 0.1 ln s + 1."""

        @model_validator(mode="after")
        def _ordered(self) -> YaRN.Options:
            ordered(self.beta_slow, self.beta_fast, "beta_slow and beta_fast")
            return self

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        found = rotation(self.name, encoding)
        factor = scaling(self.options.factor, train_length, length)
        if factor == 1:
            if self.options.attention_factor is not None:
                raise StrategyRefused("yarn with factor 1 changes nothing: attention_factor would have no effect")
            return encoding
        slow = self.options.beta_slow
        fast = self.options.beta_fast or most_turns(train_length, slow)
        if self.options.ramp == "turns":
            shares = [ramp(r, slow, fast) for r in turns(found, train_length)]
        else:
            shares = self.by_pair(found, train_length, slow, fast)
        sharper = self.options.attention_factor or 0.1 * math.log(factor) + 1
        return tempered(blended(found, factor, shares), sharper)

    def by_pair(self, encoding: Rotary, train_length: int, slow: float, fast: float) -> list[float]:
        """γ as in the code: D(β), the number of the pair that makes β turns, is counted on beyond the last one."""
        made = turns(encoding, train_length)
        ratios = {round(first / second, 6) for first, second in pairwise(made) if second}
        if len(ratios) != 1 or 1.0 in ratios:
            raise refusal(self.name, encoding, "the ramp by pairs is made for frequencies in a geometric sequence")
        step = math.log(made[0] / made[1])
        low, high = (math.log(made[0] / beta) / step for beta in (fast, slow))
        if self.options.ramp == "pairs":
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, 2 * len(made) - 1)
        high = high + 0.001 if low == high else high
        return [1 - ramp(pair, low, high) for pair in range(len(made))]
