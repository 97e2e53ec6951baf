"""addition: the sum of two numbers with equally many digits."""

from __future__ import annotations

from random import Random
from typing import Literal

from pe_cli.tasks.base import Instance, Task, TaskOptions
from pe_cli.tasks.registry import register

MOST = 4299
"""Digits: the sum has one more, and Python writes numbers of up to 4300."""


@register
class Addition(Task):
    r"""Add two numbers of n digits; the sum has n + 1, with a zero in front where it needs no more than n.

    .. math:: a_1 \dots a_n \texttt{+} b_1 \dots b_n \texttt{=} \mapsto s_0 s_1 \dots s_n

    Every number of n digits is equally likely, those that begin with zeros too. With the least significant digit first
    all three numbers are written backwards: the carry then runs in the order of writing, and each digit needs only the
    two of its place and one carry. Written plainly, the first digit may depend on all others.

    Shortcuts: a digit by chance is right in 0.1 of all cases, the leading 0 or 1 in 0.5. To forget about carries is
    right wherever none arrives, in about half of the digits, and hardly ever in a whole sum.
    """

    name = "addition"
    reference = "Lee et al. 2023, arXiv:2307.03381"
    counted = "digits of each number"
    symbols = "0123456789+="

    class Options(TaskOptions):
        order: Literal["plain", "least_first"] = "plain"
        """How numbers are written: as people do, or with the least significant digit first."""

    def lacking(self, length: int) -> str | None:
        return None if length <= MOST else f"numbers of {length} digits are too long to be written; {MOST} are the most"

    def instance(self, length: int, draw: Random) -> Instance:
        a, b = draw.randrange(10**length), draw.randrange(10**length)
        numbers = digits(a, length), digits(b, length), digits(a + b, length + 1)
        first, second, total = numbers if self.options.order == "plain" else [text[::-1] for text in numbers]
        return Instance(f"{first}+{second}=", total)


def digits(number: int, count: int) -> str:
    return f"{number:0{count}d}"
