"""randomized: ids are a random subset of a range far larger than the window, in order."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings.views import Positions
from pe_cli.samplers.base import Ranged
from pe_cli.samplers.registry import register
from pe_cli.seeds import seeded

MOST_DRAWS = 1000
"""Each is an evaluation of its own: more is a slip of the keyboard."""


@register
class Randomized(Ranged):
    r"""T different ids of 0 … M − 1, drawn evenly without replacement and sorted.

    .. math:: p_0 < p_1 < \dots < p_{T-1}, \quad \{p_t\} \subset \{0, \dots, M - 1\}

    A window of any length up to M shows ids, and distances, from the same range. Evaluation draws too, as in the
    released code. A loss is the mean of the losses of `evaluation_draws` draws: what one draw costs on average; the
    mean of the probabilities would be the loss of several models at once. These draws depend on the length, M and
    the number of the draw alone, so that all windows, runs and commands meet the same ids. A window longer than M
    has no such ids and is undefined, but for a strategy, which counts its characters from 0.
    """

    name = "randomized"
    reference = "Ruoss et al. 2023, arXiv:2305.16843"

    class Options(Ranged.Options):
        per: Literal["batch", "example"] = "batch"
        """Whether the windows of a training batch share their ids, as in the released code."""
        evaluation_draws: Annotated[int, Field(gt=0, le=MOST_DRAWS)] = 3
        """Over how many draws a loss in evaluation is averaged."""

    def longest(self) -> int:
        return self.ids()

    def drawn(self, batch: int, length: int, generator: torch.Generator) -> Positions:
        rows = batch if self.options.per == "example" else 1
        return Positions(subsets(rows, length, self.ids(), generator))

    def evaluated(self, places: Positions, draw: int) -> Positions:
        length = places.ids.shape[1]
        generator = seeded(draw, f"evaluation ids, {length} of {self.ids()}")
        return Positions(subsets(1, length, self.ids(), generator).to(places.ids.device))

    def draws(self, length: int) -> int:
        count: int = self.options.evaluation_draws
        return count if length < self.ids() else 1  # there is one way to take all

    @staticmethod
    def notes(options: Any) -> list[str]:
        count, ids = options.evaluation_draws, f"from {options.max_position} ids"
        if count == 1:
            return [f"randomized: losses are of one draw {ids}, the same for all windows of a length"]
        return [
            f"randomized: losses are means over {count} draws {ids}: every window of a length meets each of them, an "
            "instance of a task one of them in turn"
        ]


def subsets(rows: int, size: int, most: int, generator: torch.Generator) -> Tensor:
    """Sorted random subsets (rows, size) of 0 … most − 1 on the CPU: the places of the largest random numbers."""
    drawn, random = [], torch.empty(most, dtype=torch.float64)
    for _ in range(rows):  # one after another, in one place: most may be millions
        random.uniform_(generator=generator)
        drawn.append(random.topk(size, sorted=False).indices.sort().values)
    return torch.stack(drawn).float()
