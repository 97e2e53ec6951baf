"""A task as data: batches of instances to train on, and sets of instances to evaluate on.

Each instance has a row of its own, so that its ids begin at 0 and it sees no other. Where rows of several lengths
stand together, shorter ones are filled up with a neutral character that is never fed to a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pe_cli.built_in import sha256_hex
from pe_cli.corpus import BatchState, restored
from pe_cli.errors import CorpusError
from pe_cli.protocols import Targets, TooShort
from pe_cli.seeds import seeded
from pe_cli.tasks import Instance, Task, build
from pe_cli.tasks.base import PAD

UNSCORED = -100
"""The target of a character that does not count: what cross entropy leaves out."""
FINGERPRINT = 32


@dataclass(frozen=True, eq=False)
class TaskData:
    """A task in the place of a text.

    alphabet: that of the task, or that of a run which is asked something that it was not trained on.
    data_hash: SHA-256 (hex) of the options and of some instances: another way of drawing them is another task.
    """

    name: str
    task: Task
    alphabet: str
    data_hash: str


def load_task(block: Mapping[str, Any], alphabet: str | None = None) -> TaskData:
    """The task of a block, in its own alphabet or in that of a run. CorpusError where that has not all characters."""
    task = build(block)
    own = "".join(sorted({*task.characters, PAD}))
    if alphabet is not None and alphabet != own:
        task = build(block, alphabet)
    name = f"task {task.name}"
    unknown = sorted(set(task.characters) - set(alphabet or own))
    if unknown:
        raise CorpusError(f"{name}: the run does not know the characters {' '.join(map(repr, unknown))}")
    options = task.options
    told = [json.dumps(dict(block), sort_keys=True)]
    spread = np.linspace(options.min_length, options.max_length, FINGERPRINT).astype(int).tolist()
    told += [drawn(task, length, f"fingerprint/{number}").text for number, length in enumerate(spread)]
    return TaskData(name, task, alphabet or own, sha256_hex("\n".join(told).encode()))


def drawn(task: Task, length: int, stream: str) -> Instance:
    """The instance of a length that a name gives. Streams of different names have nothing to do with each other."""
    return task.instance(length, Random(f"{task.name}/{stream}/{length}"))


# --- rows ---


@dataclass(frozen=True, eq=False)
class Rows:
    """Instances as ids: tokens (n, T + 1), and which of the last T are scored (n, T)."""

    tokens: np.ndarray
    scored: np.ndarray


def rows_of(instances: Sequence[Instance], alphabet: str) -> Rows:
    """One instance for each row, at its start; T is what the model is fed of the longest."""
    places = {character: number for number, character in enumerate(alphabet)}
    width = max(len(instance.text) for instance in instances) - 1
    tokens = np.full((len(instances), width + 1), places.get(PAD, 0), dtype=np.int64)
    scored = np.zeros((len(instances), width), dtype=bool)
    for row, instance in enumerate(instances):
        text = instance.text
        tokens[row, : len(text)] = [places[character] for character in text]
        scored[row, np.array(instance.scored) - 1] = True
    return Rows(tokens, scored)


# --- training ---


class InstanceBatches:
    """Endless batches of training instances, each batch of one length, which is drawn evenly.

    So training draws ids for as many characters as evaluation does. The stream depends on the task and the seed alone.
    """

    def __init__(self, data: TaskData, batch_size: int, seed: int) -> None:
        self.data, self.batch_size = data, batch_size
        self._generator = seeded(seed, "data")
        self._digest = hashlib.sha256().hexdigest()

    def pair(self) -> tuple[Tensor, Tensor]:
        """What is fed (B, T) and what is to follow (B, T), UNSCORED where that does not count."""
        task, options = self.data.task, self.data.task.options
        length = int(torch.randint(options.min_length, options.max_length + 1, (), generator=self._generator))
        numbers = torch.randint(2**63 - 1, (self.batch_size,), generator=self._generator).tolist()
        drawn = [task.instance(length, Random(f"{task.name}/training/{number}")) for number in numbers]
        rows = rows_of(drawn, self.data.alphabet)
        tokens = torch.from_numpy(rows.tokens)
        self._digest = hashlib.sha256(bytes.fromhex(self._digest) + rows.tokens.astype("<i8").tobytes()).hexdigest()
        return tokens[:, :-1], tokens[:, 1:].masked_fill(~torch.from_numpy(rows.scored), UNSCORED)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) chained over the rows so far: equal for runs that saw the same instances."""
        return self._digest

    def state(self) -> BatchState:
        """What `restore` needs to go on from here; it does not change with later draws."""
        return {"generator": self._generator.get_state(), "digest": self._digest}

    def restore(self, state: BatchState) -> None:
        """Go on from a `state()` bit for bit. Raises RunError for a state that cannot be one."""
        self._digest = restored(self._generator, state)


# --- evaluation ---


@dataclass(frozen=True, eq=False, kw_only=True)
class InstanceTargets(Targets):
    """The instances of one length: `ends` number them, `lengths` are the characters fed, `scored` those that count."""

    instances: tuple[Instance, ...]
    rows: Rows


def holds(task: Task, length: int) -> None:
    """TooShort where the task has no instances of this length."""
    if (why := task.lacking(length)) is not None:
        raise TooShort(why)


def evaluation_set(data: TaskData, length: int, count: int) -> InstanceTargets:
    """The first `count` instances of a length. They depend on task, length and number alone.

    TooShort where the task has none of this length.
    """
    holds(data.task, length)
    instances = tuple(drawn(data.task, length, f"evaluation/{number}") for number in range(count))
    return targets_of(data, instances)


def validation_set(data: TaskData, count: int) -> InstanceTargets:
    """Instances of the lengths that are trained, each as often as the next."""
    options = data.task.options
    lengths = np.linspace(options.min_length, options.max_length, count).round().astype(int).tolist()
    return targets_of(data, tuple(drawn(data.task, length, f"validation/{n}") for n, length in enumerate(lengths)))


def targets_of(data: TaskData, instances: tuple[Instance, ...]) -> InstanceTargets:
    fed = np.array([len(instance.text) - 1 for instance in instances])
    rows = rows_of(instances, data.alphabet)
    return InstanceTargets(
        ends=np.arange(len(fed)), lengths=fed, scored=rows.scored.sum(axis=1), instances=instances, rows=rows
    )
