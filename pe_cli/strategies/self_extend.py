"""self_extend: rotary encodings that see near characters one by one and far ones in groups."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._distances import TwoRanges, grouped, near, require_rotation
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class SelfExtend(Strategy):
    r"""Near characters have their own distances, and far ones those of groups of G.

    .. math:: s_{ij} = q_i \cdot R_{-n'} k_j / \sqrt{d}, \quad n' = p_i - p_j \text{ if this is} < W, \text{ else }
              \lfloor p_i / G \rfloor - \lfloor p_j / G \rfloor + W - \lfloor W / G \rfloor

    At W the distance jumps by an amount that depends on where the groups begin. The paper has G = 8 and W = 1024
    for models of 4096; here W is a quarter of the training length too, and G by default the smallest with which
    all distances of the window are trained ones. Its current code does not round W / G.
    """

    name = "self_extend"
    reference = "Jin et al. 2024, arXiv:2401.01325"
    needs = "a rotary encoding that sees only distances"

    class Options(StrategyOptions):
        window: PositiveInt | None = None
        """W, below the training length. None: a quarter of the training length."""
        group: PositiveInt | None = None
        """G. None: the smallest that keeps to the trained distances."""
        offset: Literal["floored", "exact"] = "floored"
        """floored: W − ⌊W / G⌋, as in the paper and the code of its time; exact: W − W / G, as in the current code."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_rotation(self.name, encoding)
        window = near(self.name, self.options.window, train_length // 4, train_length)
        group = self.options.group or smallest_group(window, train_length, length)
        offset = window - (window // group if self.options.offset == "floored" else window / group)
        return TwoRanges(encoding, window, grouped(group, offset))


def smallest_group(window: int, train_length: int, length: int) -> int:
    """The smallest G whose largest distance is below L; one group for all where there is none."""
    for group in range(1, length):
        if (length - 1) // group + window - window // group < train_length:
            return group
    return length
