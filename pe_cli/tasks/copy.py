"""copy: the same characters again."""

from __future__ import annotations

from random import Random

from pe_cli.tasks.base import Instance, Task, some
from pe_cli.tasks.registry import register

LETTERS = "abcdefghij"


@register
class Copy(Task):
    r"""Write down what stands before the sign.

    .. math:: x_1 \dots x_n \texttt{>} \mapsto x_1 \dots x_n

    Letters are drawn evenly and with replacement from ten. A model that guesses gets 0.1 of the characters. One that
    looks up what followed the same letter before, without positions, fails wherever a letter occurs twice: from about
    five letters on in most instances.
    """

    name = "copy"
    reference = "Jelassi et al. 2024, arXiv:2402.01032"
    counted = "letters"
    symbols = LETTERS + ">"

    def instance(self, length: int, draw: Random) -> Instance:
        letters = some(LETTERS, length, draw)
        return Instance(f"{letters}>", letters)
