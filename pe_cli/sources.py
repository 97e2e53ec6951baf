"""Where characters come from: a text, or a task that makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pe_cli import corpus as corpora
from pe_cli.corpus import Batches, Corpus
from pe_cli.experiment import TrainingConfig
from pe_cli.instances import InstanceBatches, TaskData, load_task
from pe_cli.protocols import Text
from pe_cli.tasks import Task

Source = Corpus | TaskData


def load(data: str | Mapping[str, Any], alphabet: str | None = None) -> Source:
    """The text or the task of an experiment; ids by its own alphabet or by a given one."""
    return corpora.load(data, alphabet) if isinstance(data, str) else load_task(data, alphabet)


def load_once(data: str | Mapping[str, Any], known: dict[str, Source]) -> Source:
    """The text or the task of an experiment, read the first time alone: `known` keeps what was."""
    key = json.dumps(data, sort_keys=True)
    if key not in known:
        known[key] = load(data)
    return known[key]


def check_length(source: Source, length: int, key: str) -> None:
    """CorpusError unless a text has a training part of this length, which `key` set. A task has no end."""
    if isinstance(source, Corpus):
        corpora.check_length(source, length, key)


def extent(source: Source) -> Text | Task:
    """What tells which lengths there are."""
    return Text(len(source.ids), source.held_start) if isinstance(source, Corpus) else source.task


def batches(source: Source, config: TrainingConfig, seed: int) -> Batches | InstanceBatches:
    """The endless training batches of a seed."""
    if isinstance(source, Corpus):
        return Batches(source.train, config.length, config.batch_size, seed, config.length_range)
    return InstanceBatches(source, config.batch_size, seed)
