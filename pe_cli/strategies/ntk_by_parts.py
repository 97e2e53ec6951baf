"""ntk_by_parts: rotary encodings whose slow pairs are slowed down, and whose fast ones are not."""

from __future__ import annotations

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._frequencies import blended, most_turns, ordered, ramp, rotation, scaling, turns
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class NTKByParts(Strategy):
    r"""Pairs with few turns in the trained length are interpolated, and those with many stay as they are.

    .. math:: \theta_k' = (1 - \gamma_k)\,\theta_k / s + \gamma_k \theta_k, \quad
              \gamma_k = \text{clip}\big((r_k - \alpha) / (\beta - \alpha), 0, 1\big), \quad
              r_k = L\,\theta_k / 2 \pi

    It is the formula of the YaRN paper. The program that first had the name blends three schedules, with constants
    of its own. β = 32 was tuned on models of 4096 ids: where training is so short that hardly a pair makes so many
    turns, a smaller one takes its place.
    """

    name = "ntk_by_parts"
    reference = "Peng et al. 2024, arXiv:2309.00071 (section 3.2); bloc97 2023"
    needs = "a rotary encoding"

    class Options(StrategyOptions):
        factor: float | None = Field(default=None, ge=1)
        """s, for all lengths. None: T / L."""
        alpha: NonNegativeFloat = 1.0
        """α: with fewer turns a pair is interpolated."""
        beta: PositiveFloat | None = None
        """β: with more turns it stays as it is. None: the paper's 32, or √(L / 2π) if that is less, 4.5 for L = 128:
        half way, in octaves, from a pair that makes one turn to the fastest."""

        @model_validator(mode="after")
        def _ordered(self) -> NTKByParts.Options:
            ordered(self.alpha, self.beta, "alpha and beta")
            return self

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        found = rotation(self.name, encoding)
        low = self.options.alpha
        high = self.options.beta or most_turns(train_length, low)
        shares = [ramp(r, low, high) for r in turns(found, train_length)]
        return blended(found, scaling(self.options.factor, train_length, length), shares)
