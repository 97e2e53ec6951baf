"""reverse: the same characters, the last one first."""

from __future__ import annotations

from random import Random

from pe_cli.tasks.base import Instance, Task, some
from pe_cli.tasks.registry import register

LETTERS = "abcdefghij"


@register
class Reverse(Task):
    r"""Write down backwards what stands before the sign.

    .. math:: x_1 \dots x_n \texttt{<} \mapsto x_n \dots x_1

    Letters are drawn evenly and with replacement from ten: a model that guesses gets 0.1 of the characters. The
    first character of the answer is the neighbour of the sign, the distance to what is wanted grows by two with
    every character.
    """

    name = "reverse"
    reference = "Delétang et al. 2023, arXiv:2207.02098"
    counted = "letters"
    symbols = LETTERS + "<"

    def instance(self, length: int, draw: Random) -> Instance:
        letters = some(LETTERS, length, draw)
        return Instance(f"{letters}<", letters[::-1])
