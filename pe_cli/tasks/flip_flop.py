"""flip_flop: the bit that was written last, past everything that is to be ignored."""

from __future__ import annotations

from random import Random
from typing import Literal

from pe_cli.tasks.base import Instance, Length, Task, TaskOptions
from pe_cli.tasks.registry import register

IGNORED = {"in_distribution": 0.8, "sparse": 0.98, "dense": 0.1}


@register
class FlipFlop(Task):
    r"""n instructions, each with a bit: write it, ignore it, or read the bit that was written last.

    .. math:: \texttt{w} b_1 \; o_2 b_2 \dots \texttt{r} \mapsto b_{\max\{i : o_i = \texttt{w}\}}, \quad
              o_i \in \{\texttt{w}, \texttt{i}, \texttt{r}\}

    The first instruction is a write and the last a read. Between them an instruction is ignored with probability p,
    written or read with (1 - p) / 2 each; bits of writes and of ignored instructions are drawn evenly. The paper trains
    at p = 0.8 and tests at 0.8, on sparse (0.98) and dense (0.1) sequences. The bits of all reads are scored, as in the
    paper.

    Shortcuts: chance is right in 0.5 of the reads; the bit of the instruction before, whatever it was, in
    :math:`1 - p / 2`: 0.6 at p = 0.8, 0.51 in sparse and 0.95 in dense sequences. The first bit
    is right wherever there was no other write: in sparse sequences of 20, 48 and 200 instructions in 0.93, 0.85 and
    0.68 of the reads.
    """

    name = "flip_flop"
    reference = "Liu et al. 2023, arXiv:2306.00946"
    counted = "instructions"
    symbols = "wir01"

    class Options(TaskOptions):
        min_length: Length = 2
        """Training draws one length for all instances of a batch, evenly from here ..."""
        distribution: Literal["in_distribution", "sparse", "dense"] = "in_distribution"
        """How many instructions are ignored: 80, 98 or 10 of 100. A run trained on one can be asked another."""

    def lacking(self, length: int) -> str | None:
        return None if length > 1 else "one instruction is no write and a read: at least 2 are needed"

    def instance(self, length: int, draw: Random) -> Instance:
        ignored = IGNORED[self.options.distribution]
        rest = (1 - ignored) / 2
        between = draw.choices("wir", weights=(rest, ignored, rest), k=length - 2)
        text, reads = "", []
        memory = ""
        for instruction in ["w", *between, "r"]:
            bit = memory if instruction == "r" else draw.choice("01")
            if instruction == "w":
                memory = bit
            elif instruction == "r":
                reads.append(len(text) + 1)
            text += instruction + bit
        return Instance(text[:-1], text[-1], tuple(reads[:-1]))
