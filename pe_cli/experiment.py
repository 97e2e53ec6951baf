"""The keys of an experiment, their defaults and their ranges."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from pe_cli import samplers, tasks
from pe_cli.encodings import registry
from pe_cli.errors import canonical, nearest
from pe_cli.protocols import INSTANCES
from pe_cli.schema import Section, shown
from pe_cli.strategies import Entries

PROTOCOLS = ("same_targets", "non_overlapping", "sliding", INSTANCES)
INSTANCES_SCORED = 256
LONGEST = 2**24
"""Ids are float32, which counts without gaps up to here."""
MOST_AT_ONCE = 2**24
"""Characters in a batch. More than this is a slip of the keyboard, and would freeze the machine."""
MOST_WINDOWS = 2**20
"""Windows of an evaluation: an instance of a task is drawn, and kept, for each."""
NAMED_BLOCKS = {"encoding": "rope", "positions": "sequential"}
"""Blocks that may be shortened to their name, with the default."""


def directory_name(name: str) -> str:
    """The name, where it is one that a directory can have and a person can read; else ValueError."""
    wrong = {unicodedata.category(character) for character in name} & {"Cc", "Cs", "Zl", "Zp"}
    if wrong or "/" in name or name.startswith(".") or not name.strip() or len(name.encode()) > 100:
        raise ValueError(
            "must be 1 to 100 bytes without a slash, control characters or a leading dot, "
            f"as it names a directory, not {shown(name)}"
        )
    return name


def doubled_lengths(first: int, last: int = 4096) -> tuple[int, ...]:
    """`first`, twice that, and so on up to `last`; `first` alone where it is longer."""
    lengths = [first]
    while lengths[-1] * 2 <= last:
        lengths.append(lengths[-1] * 2)
    return tuple(lengths)


class ModelConfig(Section):
    """The sizes and options of the Transformer."""

    d_model: Annotated[int, Field(gt=0, le=2**14)] = 128
    n_heads: PositiveInt = 4
    n_layers: Annotated[int, Field(gt=0, le=1024)] = 4
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    qk_norm: bool = False
    """Queries and keys of each head are divided by their root mean square and get learned gains, one for each
    column, which the heads of a layer share. Positions act afterwards: a rotation turns what is normalised."""
    log_n: bool = False
    """Query i, counted from 0, is multiplied by max(1, ln(i + 1) / ln L), with L the training length: nothing
    changes up to L, and beyond it attention to ever more keys does not go flat."""

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelConfig:
        if self.d_model % self.n_heads == 0:
            return self
        heads = [count for count in range(1, min(self.d_model, 1024) + 1) if self.d_model % count == 0]
        close = sorted(sorted(heads, key=lambda count: abs(count - self.n_heads))[:3])
        below = self.d_model - self.d_model % self.n_heads
        widths = [str(width) for width in (below, below + self.n_heads) if width > 0]
        raise ValueError(
            f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: n_heads "
            f"{', '.join(str(count) for count in close)} would work, or d_model {' or '.join(widths)}"
        )


class TrainingConfig(Section):
    """The recipe."""

    length: Annotated[int, Field(ge=2, le=LONGEST)] = 128
    """Characters in a training window. Losses beyond it are compared with the loss at this length, or, where windows
    vary, at the longest."""
    length_range: tuple[int, ...] | None = None
    """[low, high]: each batch draws its own length from all whole numbers from low to high, and has as many windows of
    it as come nearest to batch_size × length characters. None: every window has `length` characters."""
    batch_size: PositiveInt = 32
    """Windows in a batch, of `length` characters each."""
    steps: NonNegativeInt = 400
    optimizer: Literal["muon", "adamw"] = "muon"
    learning_rate: PositiveFloat = 0.01
    """AdamW: everything, or all but the block matrices."""
    muon_learning_rate: PositiveFloat = 0.02
    """Muon: the block matrices."""
    weight_decay: NonNegativeFloat = 0.0
    warmup_steps: NonNegativeInt = 20
    grad_clip: PositiveFloat = 1.0
    eval_every: PositiveInt = 250
    save_every: PositiveInt = 250
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    compile: Literal["auto", "true", "false"] = "auto"

    @property
    def longest(self) -> int:
        """Characters in the longest training window."""
        return self.length if self.length_range is None else self.length_range[1]

    @property
    def longest_key(self) -> str:
        """The key that says so."""
        return "training.length" if self.length_range is None else "training.length_range"

    @field_validator("length_range")
    @classmethod
    def _two_lengths(cls, bounds: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if bounds is not None and (len(bounds) != 2 or not 2 <= bounds[0] <= bounds[1] <= LONGEST):
            raise ValueError(f"must be two lengths [low, high] from 2 to {LONGEST}, not {shown(list(bounds))}")
        return bounds

    @model_validator(mode="after")
    def _range_holds_the_length(self) -> TrainingConfig:
        if self.length_range is None:
            return self
        low, high = self.length_range
        if not low <= self.length <= high:
            raise ValueError(f"length {self.length} is outside of length_range [{low}, {high}]")
        if high > self.batch_size * self.length:
            raise ValueError(
                f"length_range [{low}, {high}]: a window of {high} characters is more than a batch, of batch_size "
                f"{self.batch_size} × length {self.length}; batch_size {-(-high // self.length)} or more would do"
            )
        return self

    @model_validator(mode="after")
    def _batch_fits(self) -> TrainingConfig:
        if self.batch_size * self.length <= MOST_AT_ONCE:
            return self
        raise ValueError(
            f"batch_size {self.batch_size} × length {self.length} is {self.batch_size * self.length} characters at "
            f"once, and {MOST_AT_ONCE} is the most: at this length batch_size {MOST_AT_ONCE // self.length} would do"
        )


class EvaluationConfig(Section):
    """What is measured beyond the training length. Lengths not given double from the training length."""

    lengths: tuple[int, ...] = doubled_lengths(128)
    strategies: Entries = ("none", "repeat_last", "interpolate")
    """Each is a name or a block with a name and options; `all`: those with a meaning for the encoding."""
    protocols: tuple[str, ...] = ("same_targets",)
    stride: PositiveInt = 64
    """Characters by which the windows of the protocol sliding advance; at most the length counts."""
    windows: Annotated[int, Field(gt=0, le=MOST_WINDOWS)] = 32
    """Windows scored at every length."""
    scored: PositiveInt = 64
    """Characters scored at the end of each window; at most the training length."""
    batch_size: PositiveInt = 8

    @field_validator("lengths")
    @classmethod
    def _ascending(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if not lengths or min(lengths) < 2 or max(lengths) > LONGEST:
            raise ValueError(f"must be one or more lengths from 2 to {LONGEST}, not {shown(list(lengths))}")
        return tuple(sorted(set(lengths)))

    @field_validator("protocols")
    @classmethod
    def _known_protocols(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, list(PROTOCOLS))


def _known(names: tuple[str, ...], known: list[str]) -> tuple[str, ...]:
    if not names:
        raise ValueError(f"must name at least one; known: {', '.join(known)}")
    for name in names:
        if canonical(name) not in known:
            raise ValueError(f"{shown(name)} is not known{nearest(name, known)}")
    return tuple(dict.fromkeys(canonical(name) for name in names))


class Experiment(Section):
    """All that decides a run and its evaluation, defaults filled in; `model_dump(mode="json")` is JSON."""

    name: str
    seed: NonNegativeInt = 1337
    data: Annotated[str | dict[str, Any], BeforeValidator(tasks.canonical_data)] = "pydocs"
    """A built-in corpus, the absolute path of a text file, or a task with its options."""
    encoding: Annotated[dict[str, Any], BeforeValidator(registry.canonical_block)] = {"name": NAMED_BLOCKS["encoding"]}
    positions: Annotated[dict[str, Any], BeforeValidator(samplers.canonical_block)] = {
        "name": NAMED_BLOCKS["positions"]
    }
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)

    @field_validator("name")
    @classmethod
    def _names_a_directory(cls, name: str) -> str:
        return directory_name(name)

    @property
    def is_task(self) -> bool:
        return not isinstance(self.data, str)

    @property
    def trained_length(self) -> int:
        """The longest length of training, counted as `evaluation.lengths` are: a task counts in its own way."""
        return self.training.longest if isinstance(self.data, str) else int(self.data["max_length"])


def task_lengths(longest: int) -> tuple[int, ...]:
    """Half of the longest length of training, and that itself to four times."""
    return tuple(sorted({max(2, longest // 2), *(longest * factor for factor in (1, 2, 3, 4))} - {1}))


def training_identity(experiment: Experiment, data_hash: str) -> str:
    """Ten hex digits of all that decides a training but its seed: equal training, equal digits."""
    parts = experiment.model_dump(mode="json", exclude={"name", "seed", "data", "evaluation"})
    if experiment.training.length_range is None:
        del parts["training"]["length_range"]  # so that runs from before this key keep their names
    text = json.dumps({**parts, "data_hash": data_hash}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
