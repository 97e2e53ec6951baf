"""dynamic_ntk: rotary encodings with a base that grows with the length of the text."""

from __future__ import annotations

from pydantic import NonNegativeFloat

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._frequencies import rebased
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class DynamicNTK(Strategy):
    r"""The base grows with the length T, faster than in proportion to T / L.

    .. math:: b' = b\,s^{d / (d - 2)}, \quad s = a\,T / L - (a - 1) = 1 + a\,(T / L - 1)

    It is a function of the length alone. The transformers library, which calls a `factor`, keeps the base of the
    longest text so far. Here every window is read with one base, the earlier characters too. a = 1 is `ntk`.
    """

    name = "dynamic_ntk"
    reference = "emozilla 2023, reddit.com/r/LocalLLaMA (dynamically scaled RoPE)"
    needs = "a rotary encoding"

    class Options(StrategyOptions):
        growth: NonNegativeFloat = 2.0
        """a: how fast s grows with the length; with 0 nothing changes."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        return rebased(self.name, encoding, 1 + self.options.growth * (length / train_length - 1))
