"""llama3: rotary encodings whose slow pairs are slowed down, as in Llama 3.1."""

from __future__ import annotations

from pydantic import Field, PositiveFloat, model_validator

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._frequencies import blended, ordered, ramp, rotation, scaling, turns
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Llama3(Strategy):
    r"""Pairs with less than one turn in the trained length are interpolated, those with four or more are not.

    .. math:: \theta_k' = (1 - \gamma_k)\,\theta_k / s + \gamma_k \theta_k, \quad
              \gamma_k = \text{clip}\big((r_k - r_{low}) / (r_{high} - r_{low}), 0, 1\big), \quad
              r_k = L\,\theta_k / 2 \pi

    The formula is that of `ntk_by_parts`; what is its own are the turns between which it blends. Llama 3.1 has
    s = 8 and L = 8192, and was trained further with it.
    """

    name = "llama3"
    reference = "Llama team 2024, arXiv:2407.21783; the released code of Llama 3.1"
    needs = "a rotary encoding"

    class Options(StrategyOptions):
        factor: float | None = Field(default=None, ge=1)
        """s, for all lengths. None: T / L."""
        low_freq_factor: PositiveFloat = 1.0
        """With fewer turns a pair is interpolated."""
        high_freq_factor: PositiveFloat = 4.0
        """With more turns it stays as it is."""

        @model_validator(mode="after")
        def _ordered(self) -> Llama3.Options:
            ordered(self.low_freq_factor, self.high_freq_factor, "low_freq_factor and high_freq_factor")
            return self

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        found = rotation(self.name, encoding)
        low, high = self.options.low_freq_factor, self.options.high_freq_factor
        shares = [ramp(r, low, high) for r in turns(found, train_length)]
        return blended(found, scaling(self.options.factor, train_length, length), shares)
