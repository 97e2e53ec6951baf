"""leaky_rerope: rotary encodings whose distances grow more slowly from a window on."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._distances import TwoRanges, near, require_rotation, slower
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class LeakyReRoPE(Strategy):
    r"""Distances of a rotation grow by 1/k only from half of the trained length on.

    .. math:: s_{ij} = \max(1, \ln(i + 1) / \ln L)\; q_i \cdot R_{-n'} k_j / \sqrt{d}, \quad
              n' = n \text{ if } n = p_i - p_j < w, \text{ else } w + (n - w) / k

    With k = 1 nothing changes but the factor; as k grows it becomes `rerope`. The released code has k = 16 for
    long texts; here k is by default just so large that the last distance of the window is a trained one.
    """

    name = "leaky_rerope"
    reference = "Su 2023, github.com/bojone/rerope"
    needs = "a rotary encoding that sees only distances"

    class Options(StrategyOptions):
        window: PositiveInt | None = None
        """w, below the training length. None: half the training length."""
        stretch: float | None = Field(default=None, ge=1)
        """k. None: the distance T − 1 becomes L − 1."""
        log_n: bool = True
        """Whether logits have the logarithmic factor."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_rotation(self.name, encoding)
        window = near(self.name, self.options.window, train_length // 2, train_length)
        stretch = self.options.stretch or (length - 1 - window) / max(1, train_length - 1 - window)
        log_n = train_length if self.options.log_n and not encoding.spec.log_n else None
        return TwoRanges(encoding, window, slower(window, max(1.0, stretch)), log_n)
