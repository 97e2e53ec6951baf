"""associative_recall: the value that stood behind a key."""

from __future__ import annotations

from random import Random

from pydantic import Field

from pe_cli.tasks.base import Instance, Task, TaskOptions, some
from pe_cli.tasks.registry import register

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"


@register
class AssociativeRecall(Task):
    r"""n different keys, each with its value, and then one of the keys again: say its value.

    .. math:: k_1 v_1 \dots k_n v_n \texttt{?} k_i \mapsto v_i

    Keys are words of letters, drawn without replacement; values are digits, drawn evenly with replacement; every pair
    is asked for equally often. Chance is right in 0.1 of the instances, and so is the digit that occurs most often in
    long ones. Nothing depends on the order of the pairs: an encoding that sees no positions could do it, but for the
    step from a key to the value behind it.
    """

    name = "associative_recall"
    reference = "Ba et al. 2016, arXiv:1610.06258"
    counted = "pairs of a key and a value"
    symbols = LETTERS + DIGITS + "?"

    class Options(TaskOptions):
        key_letters: int = Field(default=2, ge=1, le=4)
        """Letters of a key. There are 26 to this power different keys, and no instance has more pairs."""

    @property
    def keys(self) -> int:
        return len(LETTERS) ** int(self.options.key_letters)

    def lacking(self, length: int) -> str | None:
        if length <= self.keys:
            return None
        return f"{length} pairs need as many keys; there are {self.keys} of {self.options.key_letters} letters"

    def instance(self, length: int, draw: Random) -> Instance:
        keys = [word(number, self.options.key_letters) for number in draw.sample(range(self.keys), length)]
        values = some(DIGITS, length, draw)
        asked = draw.randrange(length)
        pairs = "".join(key + value for key, value in zip(keys, values, strict=True))
        return Instance(f"{pairs}?{keys[asked]}", values[asked])


def word(number: int, count: int) -> str:
    """The word of `count` letters with this number in the order of a dictionary."""
    letters = []
    for _ in range(count):
        number, place = divmod(number, len(LETTERS))
        letters.append(LETTERS[place])
    return "".join(reversed(letters))
