"""parity: whether the number of ones is odd."""

from __future__ import annotations

from random import Random

from pe_cli.tasks.base import Instance, Task, some
from pe_cli.tasks.registry import register


@register
class Parity(Task):
    r"""The sum of bits modulo 2.

    .. math:: x_1 \dots x_n \texttt{=} \mapsto \sum_i x_i \bmod 2

    Bits are drawn evenly. Chance is right in 0.5 of the instances, and every rule that leaves out a single bit
    is no better: there is no shortcut.
    """

    name = "parity"
    reference = "Delétang et al. 2023, arXiv:2207.02098 (parity check)"
    counted = "bits"
    symbols = "01="

    def instance(self, length: int, draw: Random) -> Instance:
        bits = some("01", length, draw)
        return Instance(f"{bits}=", str(bits.count("1") % 2))
