"""lm_infinite: rotary encodings that see the first characters and the last ones, the first at a fixed distance."""

from __future__ import annotations

from pydantic import NonNegativeInt, PositiveInt

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._distances import TwoRanges, equally_far, require_rotation
from pe_cli.strategies._masks import Lambda
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class LMInfinite(Strategy):
    r"""A mask in the shape of a Λ, with all characters outside its window at one trained distance.

    .. math:: A_i = \{j \le i : j < g\} \cup \{j \le i : i - j < w\}, \quad
              n' = n \text{ if } n = p_i - p_j < w, \text{ else } c

    With w = c = L, as by default, n' is min(n, L), one more than any trained distance: the paper takes the
    training length for both. `sinks` is the mask with distances that go on growing.
    """

    name = "lm_infinite"
    reference = "Han et al. 2023, arXiv:2308.16137"
    needs = "a rotary encoding that sees only distances"

    class Options(StrategyOptions):
        first: NonNegativeInt = 10
        """g: how many first characters all queries see. The paper has 10 to 100."""
        window: PositiveInt | None = None
        """w, the own character included. None: the training length."""
        distance: PositiveInt | None = None
        """c. None: the training length."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_rotation(self.name, encoding)
        window, distance = self.options.window or train_length, self.options.distance or train_length
        return Lambda(TwoRanges(encoding, window, equally_far(distance)), self.options.first, window)
