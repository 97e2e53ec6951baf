"""dyck: the brackets that close all that are open."""

from __future__ import annotations

from random import Random

from pydantic import Field

from pe_cli.tasks.base import Instance, Task, TaskOptions
from pe_cli.tasks.registry import register

CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@register
class Dyck(Task):
    r"""n brackets of k kinds, nested at most d deep; close what is open, the innermost first.

    .. math:: x_1 \dots x_n \texttt{=} \mapsto \bar{o}_m \dots \bar{o}_1, \quad
              o_1 \dots o_m \text{ the brackets still open, } m \le d

    As many stay open as n and d allow: d, or one fewer where n minus d is odd. Each step opens or closes a bracket
    evenly wherever both can still lead to that number; kinds are drawn evenly. A model that guesses among closing
    brackets gets 1 / k of them, and :math:`k^{-m}` of the answers. Shortcuts: the last bracket opens wherever n minus d
    is even, and in three of four instances else (d = 4); to close the last m that open, whether closed since or not, is
    right in about 0.47 of the answers and 0.81 of their characters (k = 2, d = 4, n even), however long the text is.
    """

    name = "dyck"
    reference = "Hewitt et al. 2020, arXiv:2010.07515"
    counted = "brackets"
    symbols = "".join(map("".join, CLOSING.items())) + "="

    class Options(TaskOptions):
        kinds: int = Field(default=2, ge=1, le=4)
        """Kinds of brackets: (), [], {} and <>."""
        depth: int = Field(default=4, ge=2, le=64)
        """The most brackets that are open at once."""

    def instance(self, length: int, draw: Random) -> Instance:
        left = left_open(length, self.options.depth)
        text = ""
        stack: list[str] = []
        for steps in range(length - 1, -1, -1):  # that follow this one
            height = len(stack)
            can_open = height < self.options.depth and abs(height + 1 - left) <= steps
            can_close = height > 0 and abs(height - 1 - left) <= steps
            if can_open and (not can_close or draw.random() < 0.5):
                text += draw.choice(list(CLOSING)[: self.options.kinds])
                stack.append(CLOSING[text[-1]])
            else:
                text += stack.pop()
        return Instance(f"{text}=", "".join(reversed(stack)))


def left_open(length: int, depth: int) -> int:
    """How many brackets stay open after `length` of them: the most that depth and parity allow."""
    most = min(length, depth)
    return most if (length - most) % 2 == 0 else most - 1
