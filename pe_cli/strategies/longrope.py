"""longrope: rotary encodings with a factor of its own for each pair."""

from __future__ import annotations

import math

from pydantic import Field, PositiveFloat

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import StrategyRefused
from pe_cli.strategies._frequencies import at_frequencies, rotation, scaling, tempered
from pe_cli.strategies._ids import refusal
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class LongRoPE(Strategy):
    r"""Each pair is slowed down by a factor that was searched for, and attention is sharpened.

    .. math:: \theta_k' = \theta_k / \lambda_k, \quad m = \sqrt{1 + \ln s / \ln L}, \quad \text{logits} \times m^2

    The factors λ belong to a model and a length, and are found by search: without `factors` it is refused. The
    transformers library has m at every length, also up to L, where a strategy changes nothing here. The paper also
    leaves the first few characters as they are, which is not done here nor there.
    """

    name = "longrope"
    reference = "Ding et al. 2024, arXiv:2402.13753"
    needs = "a rotary encoding, and `factors`"

    class Options(StrategyOptions):
        factors: tuple[PositiveFloat, ...] = ()
        """λ, one for each pair of columns."""
        factor: float | None = Field(default=None, ge=1)
        """s, for all lengths: it decides m alone. None: T / L."""
        attention_factor: PositiveFloat | None = None
        """m. None: the formula above."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        found, factors = rotation(self.name, encoding), self.options.factors
        if not factors:
            raise StrategyRefused(
                "longrope has factors that are searched for each model, and none is given: "
                f"longrope(factors=[…]) with {len(found.frequencies)} of them would do"
            )
        if len(factors) != len(found.frequencies):
            why = f"it turns {len(found.frequencies)} pairs of columns, and {len(factors)} factors are given"
            raise refusal(self.name, encoding, why)
        slower = [theta / own for theta, own in zip(found.frequencies, factors, strict=True)]
        factor = scaling(self.options.factor, train_length, length)
        sharper = self.options.attention_factor or math.sqrt(1 + math.log(factor) / math.log(max(2, train_length)))
        return tempered(at_frequencies(found, slower), sharper)
