"""What a sampler is: a rule for the ids of training windows, and of longer ones in evaluation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings._composition import Wrapper, renumbered
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.errors import PositionRangeError, refused
from pe_cli.schema import Section


class Sampler:
    """The base draws nothing: ids count the characters of the window."""

    name: ClassVar[str]
    reference: ClassVar[str]
    fractional: ClassVar[bool] = False
    """Whether it draws ids between whole numbers."""

    class Options(Section):
        pass

    def __init__(self, options: Any, spec: ModelSpec) -> None:
        """SectionError for options that do not fit the sizes; `spec.max_position` is the longest training window."""
        self.options = options
        self.window = spec.max_position

    def ids(self) -> int:
        """1 + the largest id that training can show, rounded up: the rows of a learned table."""
        return self.window

    def trained_ids(self) -> int:
        """The longest window whose ids in evaluation training could show."""
        return self.ids()

    def trained_distances(self) -> int:
        """The longest window whose distances in evaluation training could show."""
        return self.window

    def first_id(self) -> float:
        """The id of the first character in evaluation."""
        return 0.0

    def widened(self, spec: ModelSpec) -> ModelSpec:
        """The sizes of a model that is shown these ids."""
        return replace(
            spec,
            max_position=self.ids(),
            trained_ids=self.trained_ids(),
            trained_distances=self.trained_distances(),
            first_id=self.first_id(),
        )

    def applied(self, encoding: PositionEncoding) -> PositionEncoding:
        """The encoding, which was built for `widened` sizes, with these ids."""
        return Sampled(encoding, self)

    def drawn(self, batch: int, length: int, generator: torch.Generator) -> Positions:
        """Ids (B or 1, T) of a training batch."""
        return Positions.sequential(length)

    def evaluated(self, places: Positions, draw: int) -> Positions:
        """The ids of evaluation, from 0, 1, 2, … or what a strategy makes of those. They do not read the text."""
        return places

    def draws(self, length: int) -> int:
        """How many sets of ids evaluation averages the losses of."""
        return 1

    def longest(self) -> int | None:
        """The longest window that the rule has ids for; None: any."""
        return None

    @staticmethod
    def notes(options: Any) -> list[str]:
        """What a table of losses must say of the ids that these options make."""
        return []


class Ranged(Sampler):
    """A sampler whose ids lie in 0 … M − 1, and whose training windows show distances from all of it."""

    class Options(Section):
        max_position: Annotated[int, Field(gt=0, le=2**24)] = 4096
        """M: the number of ids; at least the longest window of training."""

    def __init__(self, options: Any, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        if options.max_position < self.window:
            text = f"{options.max_position} ids are too few for training windows of {self.window} characters"
            raise refused("max_position", f"{text}; {self.window} or more would do")

    def ids(self) -> int:
        most: int = self.options.max_position
        return most

    def trained_distances(self) -> int:
        return self.ids()


class Sampled(Wrapper):
    """An encoding whose ids come from a sampler: the same ids for all parts of a composition.

    In evaluation `number` says which of the sampler's draws. `extended`: whether a strategy has changed the encoding
    for windows beyond those that the sampler has ids for, which it then leaves to the strategy.
    """

    def __init__(self, inner: PositionEncoding, sampler: Sampler) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family, self.reference, self.year = inner.name, inner.family, inner.reference, inner.year
        self.sampler, self.number, self.extended = sampler, 0, False

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        batch, length = tokens.shape
        places = self.inner.positions(tokens, generator)
        if generator is not None:
            drawn = self.sampler.drawn(batch, length, generator)
            moved = replace(drawn, ids=drawn.ids.to(tokens.device))
            return renumbered(places, lambda _: moved)
        longest = self.sampler.longest()
        if longest is not None and length > longest:
            if self.extended:
                return places
            raise PositionRangeError(
                f"{self.sampler.name} draws from {longest} ids, and a window of {length} characters needs as many"
            )
        return renumbered(places, lambda own: self.sampler.evaluated(own, self.number))

    def draws(self, length: int) -> Sequence[PositionEncoding]:
        longest, length = self.sampler.longest(), min(length, self.piece or length)
        count = 1 if longest is not None and length > longest else self.sampler.draws(length)
        return [self.at_draw(number) for number in range(count)]

    def at_draw(self, number: int) -> Sampled:
        """The same encoding, sharing all parameters, in one of the draws of evaluation."""
        clone = copy.copy(self)
        clone.number = number
        return clone

    def map(self, function: Callable[[PositionEncoding], PositionEncoding]) -> PositionEncoding:
        changed = super().map(function)
        if isinstance(changed, Sampled) and changed is not self:
            changed.extended = True
        return changed
