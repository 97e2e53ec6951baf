"""Loss by length, strategy and protocol, with intervals and the paired gain: rows, and nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from pe_cli import strategies
from pe_cli.config import EvaluationConfig
from pe_cli.corpus import Corpus
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import PositionRangeError, StrategyRefused
from pe_cli.instances import TaskData, holds
from pe_cli.model import Transformer
from pe_cli.protocols import Targets, Text, TooShort, non_overlapping, same_targets, sliding
from pe_cli.scoring import character_losses
from pe_cli.statistics import UNKNOWN, Estimate, over_windows
from pe_cli.tasks import Task
from pe_cli.trained import Trained

COLUMNS = (
    "run", "encoding", "positions", "strategy", "seed", "train_length", "length", "protocol", "loss", "loss_low",
    "loss_high", "gain", "gain_low", "gain_high", "bits_per_char", "perplexity", "scored_chars", "status", "reason",
    "seconds", "largest_id", "accuracy", "accuracy_low", "accuracy_high", "exact_match", "exact_match_low",
    "exact_match_high", "margin", "margin_low", "margin_high",
)  # fmt: skip
OF_TASKS = {*COLUMNS[COLUMNS.index("accuracy") :], "right_chars", "depth"}
"""Columns in which a text has no numbers: there is no one right answer in it."""
WINDOW_COLUMNS = ("strategy", "length", "protocol", "window", "loss", "right_chars", "margin", "depth", "scored_chars")
POSITION_COLUMNS = ("strategy", "length", "protocol", "position", "loss", "scored_chars")


@dataclass
class Tables:
    """The rows of extrapolation.csv, windows.csv and positions.csv."""

    extrapolation: list[dict[str, Any]] = field(default_factory=list)
    windows: list[dict[str, Any]] = field(default_factory=list)
    positions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Measurement:
    """The losses of one strategy at one length, or why there are none."""

    status: str
    reason: str | None = None
    targets: Targets | None = None
    losses: tuple[np.ndarray, ...] = ()
    largest_id: float = math.nan
    seconds: float = 0.0
    right: tuple[np.ndarray, ...] = ()
    """Of a task: whether each scored character was the likeliest one."""
    margins: np.ndarray | None = None

    @property
    def characters(self) -> np.ndarray:
        return np.concatenate(self.losses)


def targets(text: Text, protocol: str, length: int, settings: EvaluationConfig) -> Targets:
    """The windows of a protocol at one length. TooShort where the text cannot hold them."""
    if protocol == "same_targets":
        return same_targets(text, length, settings.windows, settings.scored)
    if protocol == "sliding":
        return sliding(text, length, settings.stride, settings.scored)
    return non_overlapping(text, length)


def too_long(text: Text | Task, settings: EvaluationConfig) -> dict[str, dict[int, str]]:
    """By protocol, the lengths that the text or the task cannot hold, each with the numbers needed and present."""
    found: dict[str, dict[int, str]] = {}
    for protocol in settings.protocols:
        for length in settings.lengths:
            try:
                if isinstance(text, Text):
                    targets(text, protocol, length, settings)
                else:
                    holds(text, length)
            except TooShort as short:
                found.setdefault(protocol, {})[length] = str(short)
    return found


def skipping(text: Text | Task, settings: EvaluationConfig) -> list[str]:
    """What is said of lengths that will be skipped before any time is spent: one note for each protocol."""
    return [
        f"{protocol}: skipping {', '.join(map(str, why))}: {next(iter(why.values()))}"
        for protocol, why in too_long(text, settings).items()
    ]


class Evaluation:
    """Measures a trained model on the held-out part of a text; each length is measured on its own."""

    def __init__(self, trained: Trained, corpus: Corpus, settings: EvaluationConfig) -> None:
        self.trained, self.asked = trained, settings.strategies
        self.corpus: Corpus | TaskData = corpus
        self.ids = corpus.ids
        self.train_length = trained.experiment.training.length
        self.text: Text | Task = Text(len(corpus.ids), corpus.held_start)
        self.settings = self.with_meaning(settings, max(settings.lengths))
        self.known: dict[tuple[str, int, str], Measurement] = {}

    def with_meaning(self, settings: EvaluationConfig, longest: int) -> EvaluationConfig:
        """The settings with the strategies that have a meaning for windows of up to `longest` characters."""
        own, length = self.trained.model.encoding, self.trained.experiment.training.length
        meant = strategies.with_meaning(settings.strategies, own, length, longest)
        return settings.model_copy(update={"strategies": meant})

    @property
    def device(self) -> torch.device:
        return self.trained.model.head.weight.device

    def targets(self, protocol: str, length: int) -> Targets:
        assert isinstance(self.text, Text)
        return targets(self.text, protocol, length, self.settings)

    def planned_chars(self) -> dict[str, int]:
        """Characters that a whole evaluation feeds at most, by protocol."""
        chars: dict[tuple[str, int, str], int] = {}
        for protocol in self.settings.protocols:
            for length in {self.train_length, *self.settings.lengths}:
                for strategy in self.settings.strategies:
                    try:
                        windows = self.targets(protocol, length)
                        effective, _ = self.changed(strategy, length)
                    except (TooShort, StrategyRefused):
                        continue
                    chars[effective, length, protocol] = int(windows.lengths.sum())
        return {name: sum(chars[key] for key in chars if key[-1] == name) for name in self.settings.protocols}

    def changed(self, strategy: strategies.Entry, length: int) -> tuple[str, PositionEncoding]:
        """The encoding at a length, and the strategy in effect: `none` where it changes nothing."""
        own = self.trained.model.encoding
        encoding = strategies.apply(strategy, own, self.trained.experiment.training.length, self.fed(length))
        return "none" if encoding is own else strategies.label(strategy), encoding

    def fed(self, length: int) -> int:
        """Characters that a model is fed at a length."""
        return length

    def run(self, advance: Callable[[int], None]) -> Tables:
        """Every strategy × length × protocol of the settings."""
        tables = Tables()
        for protocol in self.settings.protocols:
            for strategy in self.settings.strategies:
                base = self.measure(strategy, self.train_length, protocol, advance)
                called = strategies.label(strategy)
                for length in self.settings.lengths:
                    measured = self.measure(strategy, length, protocol, advance)
                    tables.extrapolation.append(self.row(called, length, protocol, measured, base))
                    if measured.targets is not None:
                        keys = {"strategy": called, "length": length, "protocol": protocol}
                        tables.windows.extend(self.window_rows(keys, measured))
                        tables.positions.extend(self.position_rows(keys, measured))
        return tables

    def measure(
        self, strategy: strategies.Entry, length: int, protocol: str, advance: Callable[[int], None]
    ) -> Measurement:
        """One measurement; a strategy that changes nothing shares that of `none`."""
        try:
            targets = self.targets(protocol, length)
            effective, encoding = self.changed(strategy, length)
        except TooShort as short:
            return Measurement("skipped", str(short))
        except StrategyRefused as refusal:
            return Measurement("refused", str(refusal))
        key = (effective, length, protocol)
        if key not in self.known:
            self.known[key] = self.scored(encoding, targets, advance)
        return self.known[key]

    def scored(self, encoding: PositionEncoding, targets: Targets, advance: Callable[[int], None]) -> Measurement:
        started = time.perf_counter()
        try:
            measured = self.passed(self.trained.model.using(encoding), targets, advance)
        except PositionRangeError as error:
            return Measurement("undefined", str(error))
        except (MemoryError, torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            length = int(targets.lengths.max())
            return Measurement("out_of_memory", f"windows of {length} characters do not fit into memory")
        if not all(np.isfinite(loss).all() for loss in measured.losses):
            return Measurement("diverged", "the loss is not finite")
        return replace(measured, seconds=time.perf_counter() - started)

    def passed(self, model: Transformer, targets: Targets, advance: Callable[[int], None]) -> Measurement:
        """What a pass of the model over the windows gives."""
        losses, largest_id = character_losses(model, self.ids, targets, self.settings.batch_size, advance)
        return Measurement("ok", None, targets, tuple(losses), largest_id)

    def row(
        self, strategy: str, length: int, protocol: str, measured: Measurement, base: Measurement
    ) -> dict[str, Any]:
        """One row of extrapolation.csv."""
        experiment = self.trained.experiment
        loss, gain = UNKNOWN, UNKNOWN
        if measured.targets is not None:
            loss = over_windows(sums_of(measured.characters, measured.targets.pieces), measured.targets.pieces)
            gain = self.gain(base, measured)
        values = (
            self.trained.run.path.name, experiment.encoding["name"], experiment.positions["name"], strategy,
            experiment.seed, self.train_length, length, protocol, *map(known, loss), *map(known, gain),
            known(loss.value / math.log(2)), perplexity(loss.value),
            measured.targets.scored_chars if measured.targets else 0, measured.status, measured.reason,
            measured.seconds, known(measured.largest_id), *map(known, chain(*self.answers(measured))),
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))

    def gain(self, base: Measurement, measured: Measurement) -> Estimate:
        """What context beyond the training length gives."""
        return UNKNOWN if base.targets is None else paired_gain(base, measured)

    def answers(self, measured: Measurement) -> tuple[Estimate, Estimate, Estimate]:
        """Accuracy, exact match and margin: only tasks have them."""
        return UNKNOWN, UNKNOWN, UNKNOWN

    def window_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        return window_rows(keys, measured)

    def position_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        assert measured.targets is not None
        return position_rows(keys, measured.targets, measured.losses)


def paired_gain(base: Measurement, longer: Measurement) -> Estimate:
    """loss(train_length) − loss(length) on the same characters, paired by the windows of the larger length."""
    assert base.targets is not None and longer.targets is not None  # noqa: PT018
    pieces = min(base.targets.pieces, longer.targets.pieces, key=len)
    return over_windows(sums_of(base.characters - longer.characters, pieces), pieces)


def sums_of(values: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """The sums of consecutive pieces of so many values."""
    return np.asarray(np.add.reduceat(values, np.cumsum(pieces) - pieces))


def window_rows(keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
    """The mean loss of each observation: a window, or a piece of text where windows are small steps."""
    assert measured.targets is not None
    pieces = measured.targets.pieces
    means = sums_of(measured.characters, pieces) / pieces
    return [
        {
            **keys,
            "window": number,
            "loss": float(loss),
            "right_chars": None,
            "margin": None,
            "depth": None,
            "scored_chars": int(count),
        }
        for number, (loss, count) in enumerate(zip(means, pieces, strict=True))
    ]


def position_rows(keys: dict[str, Any], targets: Targets, losses: tuple[np.ndarray, ...]) -> list[dict[str, Any]]:
    """Mean loss of the character predicted at each place of the window, counted from 0."""
    length = int(targets.lengths.max())
    sums, counts = np.zeros(length), np.zeros(length, dtype=int)
    for own_length, scored, loss in zip(targets.lengths, targets.scored, losses, strict=True):
        sums[own_length - scored : own_length] += loss
        counts[own_length - scored : own_length] += 1
    return [
        {
            **keys,
            "position": int(place),
            "loss": float(sums[place] / counts[place]),
            "scored_chars": int(counts[place]),
        }
        for place in np.flatnonzero(counts)
    ]


def known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def perplexity(loss: float) -> float | None:
    """exp(loss); None where there is no loss or it overflows."""
    return math.exp(loss) if loss < math.log(np.finfo(float).max) else None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator gave up: outside CUDA torch says so in a RuntimeError of its own."""
    said = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in said for words in ("can't allocate memory", "not enough memory", "out of memory")
    )
