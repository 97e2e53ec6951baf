"""sinks: queries that see the first characters and the last ones."""

from __future__ import annotations

from pydantic import NonNegativeInt, PositiveInt

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._masks import Lambda
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Sinks(Strategy):
    r"""Every query sees the first 4 characters and the last L ones.

    .. math:: A_i = \{j \le i : j < s\} \cup \{j \le i : i - j < w\}

    Models put weight that they have no use for on the first characters, and miss them in a mere `window`. Ids stay
    as they are: distances to the first characters go on growing, where StreamingLLM numbers what it keeps anew.
    `lm_infinite` puts them at a fixed distance, for rotary encodings.
    """

    name = "sinks"
    reference = "Xiao et al. 2023, arXiv:2309.17453 (the mask)"
    needs = "nothing"
    whole = True

    class Options(StrategyOptions):
        sinks: NonNegativeInt = 4
        """s: how many first characters all queries see. The paper finds four enough."""
        window: PositiveInt | None = None
        """w, the own character included. None: the training length."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        return Lambda(encoding, self.options.sinks, self.options.window or train_length)
