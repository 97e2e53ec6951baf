"""Loss by length, strategy and protocol, with intervals: rows, and nothing else."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any

import numpy as np
import torch

from pe_cli import statistics, strategies
from pe_cli.config import EvaluationConfig
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import PositionRangeError, StrategyRefused
from pe_cli.model import Transformer
from pe_cli.protocols import Targets, TooShort
from pe_cli.sources import Source
from pe_cli.statistics import UNKNOWN, Estimate, over_windows
from pe_cli.trained import Trained

COLUMNS = (
    "run", "encoding", "positions", "strategy", "seed", "train_length", "length", "protocol", "loss", "loss_low",
    "loss_high", "gain", "gain_low", "gain_high", "bits_per_char", "perplexity", "scored_chars", "status", "reason",
    "seconds", "largest_id", "data", "accuracy", "accuracy_low", "accuracy_high", "exact_match", "exact_match_low",
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


class Evaluation(ABC):
    """Measures a trained model, each length on its own. What is measured, and where, is said by subclasses."""

    corpus: Source
    train_length: int
    """The training length, counted as `settings.lengths` are."""
    measured_lengths: tuple[int, ...]
    """The lengths of the settings, and those that they are compared with."""

    def __init__(self, trained: Trained, settings: EvaluationConfig, longest: int) -> None:
        """`longest`: the most characters that the model will be fed at once."""
        statistics.load()
        self.trained, self.asked = trained, settings.strategies
        self.shown = trained.experiment.training.longest
        self.known: dict[tuple[str, int, str], Measurement] = {}
        meant = strategies.with_meaning(settings.strategies, trained.model.encoding, self.shown, longest)
        self.settings = settings.model_copy(update={"strategies": meant})

    @abstractmethod
    def targets(self, protocol: str, length: int) -> Targets:
        """What is scored. TooShort where there is nothing of this length."""

    @abstractmethod
    def passed(self, model: Transformer, targets: Targets, advance: Callable[[int], None]) -> Measurement:
        """What a pass of the model over the targets gives; `advance` is told the characters fed."""

    @abstractmethod
    def position_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        """The rows of positions.csv."""

    def fed(self, length: int) -> int:
        """Characters that a model is fed at a length. TooShort where there is nothing of this length."""
        return length

    def cost(self, protocol: str, length: int) -> int:
        """Characters that a pass over a length feeds. TooShort where there is nothing of this length."""
        return int(self.targets(protocol, length).lengths.sum())

    def gain(
        self, strategy: strategies.Entry, protocol: str, measured: Measurement, advance: Callable[[int], None]
    ) -> Estimate:
        """What context beyond the training length gives; unknown where other lengths want other characters."""
        return UNKNOWN

    def answers(self, measured: Measurement) -> tuple[Estimate, Estimate, Estimate]:
        """Accuracy, exact match and margin: only tasks have them."""
        return UNKNOWN, UNKNOWN, UNKNOWN

    def window_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        """The rows of windows.csv."""
        return window_rows(keys, measured)

    @property
    def device(self) -> torch.device:
        return self.trained.model.head.weight.device

    def planned_chars(self, protocols: Sequence[str] | None = None) -> dict[str, int]:
        """Characters that a whole evaluation feeds at most, by protocol; None: those of the settings."""
        protocols = self.settings.protocols if protocols is None else protocols
        chars: dict[tuple[str, int, str], int] = {}
        for protocol, length, strategy in product(protocols, self.measured_lengths, self.settings.strategies):
            try:
                effective, _ = self.changed(strategy, length)
                chars[effective, length, protocol] = self.cost(protocol, length)
            except (TooShort, StrategyRefused):
                continue
        return {name: sum(chars[key] for key in chars if key[-1] == name) for name in protocols}

    def changed(
        self, strategy: strategies.Entry, length: int, refusals: dict[str, str] | None = None
    ) -> tuple[str, PositionEncoding]:
        """The encoding at a length, and the strategy in effect: `none` where it changes nothing."""
        own = self.trained.model.encoding
        encoding = strategies.apply(strategy, own, self.shown, self.fed(length), refusals)
        return "none" if encoding is own else strategies.label(strategy), encoding

    def unchanged_parts(self) -> list[str]:
        """For each strategy that changes some parts of a composition: those that stay as they are, and why."""
        notes = []
        for strategy, length in product(self.settings.strategies, sorted(self.settings.lengths)[-1:]):
            refusals: dict[str, str] = {}
            with suppress(TooShort, StrategyRefused):
                self.changed(strategy, length, refusals)
                called = strategies.label(strategy)
                notes += [f"{called}: {part} stays as it is: {why}" for part, why in refusals.items()]
        return notes

    def run(self, advance: Callable[[int], None]) -> Tables:
        """Every strategy × length × protocol of the settings."""
        tables = Tables()
        for protocol, strategy, length in product(
            self.settings.protocols, self.settings.strategies, self.settings.lengths
        ):
            measured = self.measure(strategy, length, protocol, advance)
            gain = UNKNOWN if measured.targets is None else self.gain(strategy, protocol, measured, advance)
            called = strategies.label(strategy)
            tables.extrapolation.append(self.row(called, length, protocol, measured, gain))
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
            key = (effective, length, protocol)
            if key not in self.known:
                self.known[key] = self.scored(encoding, targets, advance)
            return self.known[key]
        except Exception as error:
            return lost(error, length)

    def scored(self, encoding: PositionEncoding, targets: Targets, advance: Callable[[int], None]) -> Measurement:
        started = time.perf_counter()
        measured = self.passed(self.trained.model.using(encoding), targets, advance)
        if not all(np.isfinite(loss).all() for loss in measured.losses):
            return Measurement("diverged", "the loss is not finite")
        return replace(measured, seconds=time.perf_counter() - started)

    def row(self, strategy: str, length: int, protocol: str, measured: Measurement, gain: Estimate) -> dict[str, Any]:
        """One row of extrapolation.csv."""
        experiment = self.trained.experiment
        loss = UNKNOWN
        if measured.targets is not None:
            loss = over_windows(sums_of(measured.characters, measured.targets.pieces), measured.targets.pieces)
        values = (
            self.trained.run.path.name, experiment.encoding["name"], experiment.positions["name"], strategy,
            experiment.seed, self.train_length, length, protocol, *map(known, loss), *map(known, gain),
            known(loss.value / math.log(2)), perplexity(loss.value),
            measured.targets.scored_chars if measured.targets else 0, measured.status, measured.reason,
            measured.seconds, known(measured.largest_id), self.corpus.name,
            *map(known, chain(*self.answers(measured))),
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def lost(error: Exception, length: int) -> Measurement:
    """What is said of a length that an error kept from being measured; an error that none should be is raised."""
    if isinstance(error, TooShort):
        return Measurement("skipped", str(error))
    if isinstance(error, StrategyRefused):
        return Measurement("refused", str(error))
    if isinstance(error, PositionRangeError):
        return Measurement("undefined", str(error))
    if is_out_of_memory(error):
        return Measurement("out_of_memory", f"length {length} does not fit into memory")
    raise error


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
