"""sort: the same characters in the order of the alphabet."""

from __future__ import annotations

from random import Random

from pe_cli.tasks.base import Instance, Task, some
from pe_cli.tasks.registry import register

LETTERS = "abcdefghij"


@register
class Sort(Task):
    r"""Write down in order what stands before the sign.

    .. math:: x_1 \dots x_n \texttt{/} \mapsto x_{\pi(1)} \le \dots \le x_{\pi(n)}

    Letters are drawn evenly and with replacement from ten. To say the letter before once more is right in about
    :math:`1 - 9 / n` of the characters of a long instance, without any counting: only the exact match tells whether
    letters are counted. The answer does not depend on the order of the prompt, so a bag of letters is enough.
    """

    name = "sort"
    reference = "Delétang et al. 2023, arXiv:2207.02098 (bucket sort)"
    counted = "letters"
    symbols = LETTERS + "/"

    def instance(self, length: int, draw: Random) -> Instance:
        letters = some(LETTERS, length, draw)
        return Instance(f"{letters}/", "".join(sorted(letters)))
