"""ntk: rotary encodings with a larger base."""

from __future__ import annotations

from pydantic import Field

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._frequencies import rebased, scaling
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class NTK(Strategy):
    r"""The base grows so that the slowest pair becomes s times as slow and the fastest stays as it is.

    .. math:: b' = b\,s^{d / (d - 2)}, \quad \theta_k' = \theta_k\,s^{-2k / (d - 2)}

    NTK-aware scaling. d counts the columns of the pairs that turn, so that encodings that leave some of them alone
    have their own slowest pair slowed down by s. Pairs between the ends still meet angles beyond the trained ones.
    """

    name = "ntk"
    reference = "bloc97 2023, reddit.com/r/LocalLLaMA (NTK-aware scaled RoPE)"
    needs = "a rotary encoding"

    class Options(StrategyOptions):
        factor: float | None = Field(default=None, ge=1)
        """s, for all lengths. None: T / L."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        return rebased(self.name, encoding, scaling(self.options.factor, train_length, length))
