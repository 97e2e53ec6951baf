"""cycle: where a walk on a circle ends."""

from __future__ import annotations

from random import Random

from pydantic import Field

from pe_cli.tasks.base import Instance, Task, TaskOptions, some
from pe_cli.tasks.registry import register

STEPS = {"-": -1, ".": 0, "+": 1}


@register
class Cycle(Task):
    r"""Go forward, back or stay, n times, on a circle of m places; say the place at the end.

    .. math:: x_1 \dots x_n \texttt{=} \mapsto \sum_i x_i \bmod m, \quad x_i \in \{-1, 0, 1\}

    Steps are drawn evenly and the walk begins at place 0. The paper calls this cycle navigation and has five places.
    Chance is right in 1 / m of the instances. The walk is slow, so that short ones end near 0: the likeliest place is
    right in 0.33 of the instances after one step, and in hardly more than 1 / m of them after twenty.
    """

    name = "cycle"
    reference = "Delétang et al. 2023, arXiv:2207.02098 (cycle navigation)"
    counted = "steps"
    symbols = "0123456789-.+="

    class Options(TaskOptions):
        places: int = Field(default=5, ge=2, le=10)
        """The places of the circle, m."""

    def instance(self, length: int, draw: Random) -> Instance:
        steps = some("-.+", length, draw)
        return Instance(f"{steps}=", str(sum(STEPS[step] for step in steps) % self.options.places))
