"""What a task is: instances of a length, each a prompt and the one right answer, as text over its own alphabet."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from pe_cli.schema import Section

PAD = "_"
"""Fills shorter rows behind the instance. No instance has it, and it is neither fed to a model nor scored."""
Length = Annotated[int, Field(ge=1, le=2**20)]


@dataclass(frozen=True)
class Instance:
    """A prompt and its answer. The characters of the answer are scored, each given all that is before it."""

    prompt: str
    answer: str
    also: tuple[int, ...] = ()
    """Places in the prompt whose characters follow from what is before them too, and are scored like the answer."""
    decoy: str | None = None
    """A wrong answer of the same size, to compare likelihoods with."""
    depth: float | None = None
    """How far from the start of the prompt what matters stands: 0 to 1."""

    @property
    def text(self) -> str:
        return self.prompt + self.answer

    @property
    def scored(self) -> tuple[int, ...]:
        """Places of all scored characters in the text."""
        return (*self.also, *range(len(self.prompt), len(self.text)))


class TaskOptions(Section):
    """The options that every task has."""

    min_length: Length = 1
    """Training draws one length for all instances of a batch, evenly from here ..."""
    max_length: Length = 20
    """... to here. Evaluation goes beyond."""

    @model_validator(mode="after")
    def _in_order(self) -> TaskOptions:
        if self.min_length <= self.max_length:
            return self
        raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")


class Task:
    """Draws instances. All of one length have equally many characters."""

    name: ClassVar[str]
    reference: ClassVar[str]
    counted: ClassVar[str]
    """What the length of an instance counts."""
    symbols: ClassVar[str] = ""

    class Options(TaskOptions):
        pass

    def __init__(self, options: Any, alphabet: str | None = None) -> None:
        """`alphabet` is that of a run that was trained on something else; None: the task has its own."""
        self.options = options

    @property
    def characters(self) -> str:
        """The characters of all instances, and of no others."""
        return self.symbols

    def lacking(self, length: int) -> str | None:
        """Why there are no instances of this length; None where there are."""
        return None

    def fed(self, length: int) -> int:
        """Characters that a model is fed of an instance of this length: all but the last."""
        return len(self.instance(length, Random(0)).text) - 1

    def instance(self, length: int, draw: Random) -> Instance:
        """An instance of this length, which `lacking` has nothing to say of."""
        raise NotImplementedError


def some(characters: str, count: int, draw: Random) -> str:
    """`count` characters, drawn evenly and with replacement."""
    return "".join(draw.choices(characters, k=count))
