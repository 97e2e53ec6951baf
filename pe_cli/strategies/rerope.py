"""rerope: rotary encodings whose distances grow no further from a window on."""

from __future__ import annotations

from pydantic import PositiveInt

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._distances import TwoRanges, equally_far, near, require_rotation
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class ReRoPE(Strategy):
    r"""Distances of a rotation grow no further from half of the trained length on.

    .. math:: s_{ij} = \max(1, \ln(i + 1) / \ln L)\; q_i \cdot R_{-\min(p_i - p_j, w)} k_j / \sqrt{d}

    The logarithmic factor belongs to the released code; a model with `log_n` has it already and gets it no second
    time.
    """

    name = "rerope"
    reference = "Su 2023, github.com/bojone/rerope"
    needs = "a rotary encoding that sees only distances"

    class Options(StrategyOptions):
        window: PositiveInt | None = None
        """w, below the training length. None: half the training length."""
        log_n: bool = True
        """Whether logits have the logarithmic factor."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_rotation(self.name, encoding)
        window = near(self.name, self.options.window, train_length // 2, train_length)
        log_n = train_length if self.options.log_n and not encoding.spec.log_n else None
        return TwoRanges(encoding, window, equally_far(window), log_n)
