"""How quickly encodings train and are evaluated, and with how much memory: rows, and nothing else.

Times of a busy machine vary, so all encodings take turns, and what is told is a median and a ratio within each turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pe_cli.compiling import Note
from pe_cli.config import Experiment
from pe_cli.corpus import Corpus
from pe_cli.evaluation import known, lost
from pe_cli.model import Transformer, hidden_size
from pe_cli.peaks import peak
from pe_cli.scoring import evaluating
from pe_cli.seeds import seeded
from pe_cli.sources import batches
from pe_cli.stepping import Stepper
from pe_cli.subjects import Subject
from pe_cli.trained import fresh_model

TRAINING, EVALUATION = "training", "evaluation"
COLUMNS = (
    "encoding", "work", "length", "windows", "seconds", "seconds_low", "seconds_high", "chars_per_second", "times",
    "peak_bytes", "fraction", "status", "reason",
)  # fmt: skip
SQUARE = 2048
"""Rows and columns of the matrices whose product tells how quickly the machine multiplies."""
FIRST = 16
"""Characters that are fed first: libraries take memory of their own with the first call."""


@dataclass
class Measured:
    """One kind of work of one encoding: what is called in each turn, and the seconds of each turn."""

    subject: Subject
    work: str
    length: int
    windows: int
    peak_bytes: int | None = None
    status: str = "ok"
    reason: str | None = None
    seconds: list[float] = field(default_factory=list)

    def is_like(self, other: Measured) -> bool:
        return (self.work, self.length) == (other.work, other.length)


@dataclass(frozen=True)
class Setting:
    """Where and on which text everything is measured."""

    corpus: Corpus
    device: torch.device
    threads: int
    rounds: int

    def model(self, subject: Subject) -> Transformer:
        return fresh_model(subject.experiment, self.corpus.alphabet).to(self.device)

    def window(self, length: int) -> Tensor:
        """The text from its start, and again where it is shorter: (1, T)."""
        return torch.from_numpy(np.resize(self.corpus.ids, length).astype(np.int64))[None].to(self.device)

    def prepare(self, one: Measured, model: Transformer, note: Note = lambda text: None) -> Callable[[], object]:
        """The work, ready to be done again and again."""
        if one.work == TRAINING:
            return training(model, one.subject.experiment, self.corpus, self.device, note)
        return partial(evaluate, model, self.window(one.length))

    def prepare_apart(self, one: Measured) -> Callable[[], object]:
        """The work, once libraries have taken what they take for themselves."""
        evaluate(self.model(one.subject), self.window(FIRST))
        return self.prepare(one, self.model(one.subject))


def training(
    model: Transformer, experiment: Experiment, corpus: Corpus, device: torch.device, note: Note
) -> Callable[[], object]:
    """Steps of training on the batches that a run would see."""
    stepper = Stepper(model, experiment.training, device, seeded(experiment.seed, "ids"))
    stepper.begin(experiment.training.length_range is not None, note)
    drawn = batches(corpus, experiment.training, experiment.seed)
    return lambda: stepper.step(*drawn.pair(), 0)


def evaluate(model: Transformer, window: Tensor) -> None:
    """All logits of a window (1, T), in float32; they are there when this returns."""
    with evaluating(model):
        model(window)[:, -1].cpu()


def planned(subjects: Sequence[Subject]) -> list[Measured]:
    """What is measured of each encoding: steps of training, then one window of every length."""
    return [one for subject in subjects for one in of_subject(subject)]


def of_subject(subject: Subject) -> Iterator[Measured]:
    config, lengths = subject.experiment.training, subject.experiment.evaluation.lengths
    yield Measured(subject, TRAINING, config.length, config.batch_size)
    yield from (Measured(subject, EVALUATION, length, 1) for length in lengths)


def measure(
    plan: Sequence[Measured], setting: Setting, advance: Callable[[Measured, int, int], None], note: Note
) -> None:
    """Fills in the plan: memory first, each in a process of its own, then times, all encodings in turn.

    `advance` is told what has just been done, and how much of how much that makes.
    """
    times = setting.rounds + 2
    done, total = 0, len(plan) * times
    for one in plan:
        found = peak(partial(setting.prepare_apart, one), setting.device, setting.threads)
        one.peak_bytes = found.bytes
        if found.error is not None:
            why = lost(found.error, one.length)
            one.status, one.reason = why.status, why.reason
        done += times if found.error is not None else 1
        advance(one, done, total)
    models = {one.subject.name: setting.model(one.subject) for one in plan}
    ready = [(one, setting.prepare(one, models[one.subject.name], note)) for one in plan if one.status == "ok"]
    for one, work in ready:
        if one.work == TRAINING:
            work()  # the first step compiles
        else:
            evaluate(models[one.subject.name], setting.window(FIRST))
        done += 1
        advance(one, done, total)
    for _ in range(setting.rounds):
        for one, work in ready:
            started = time.perf_counter()
            work()
            one.seconds.append(time.perf_counter() - started)
            done += 1
            advance(one, done, total)


def rows(plan: Sequence[Measured], baseline: str, letters: int, flops: float) -> list[dict[str, Any]]:
    """The rows of bench.csv.

    `letters`: the size of the alphabet; `flops`: what the machine does in a second where it multiplies matrices.
    """
    found = []
    for one in plan:
        against = next(other for other in plan if other.subject.name == baseline and other.is_like(one))
        ratios = [mine / its for mine, its in zip(one.seconds, against.seconds, strict=False)]  # none of what failed
        seconds, chars = median(one.seconds) if one.seconds else math.nan, one.length * one.windows
        done = training_flops(one.subject.experiment, letters) * chars if one.work == TRAINING else math.nan
        values = (
            one.subject.name, one.work, one.length, one.windows, known(seconds),
            min(one.seconds, default=None), max(one.seconds, default=None), known(chars / seconds),
            median(ratios) if ratios else None, one.peak_bytes, known(done / seconds / flops), one.status, one.reason,
        )  # fmt: skip
        found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def training_flops(experiment: Experiment, letters: int) -> int:
    """Floating-point operations of training by character, without what the encoding adds.

    6 N + 12 · layers · width · T, where N counts the entries of the matrices and T is the training length (Chowdhery
    et al. 2022, arXiv:2204.02311, appendix B).
    """
    sizes = experiment.model
    layer = 4 * sizes.d_model**2 + 3 * sizes.d_model * hidden_size(sizes.d_model)
    matrices = sizes.n_layers * layer + sizes.d_model * letters
    return 6 * matrices + 12 * sizes.n_layers * sizes.d_model * experiment.training.length


def matmul_flops(dtype: torch.dtype, device: torch.device) -> float:
    """Floating-point operations per second of a product of two large square matrices, the best of ten."""
    one = torch.randn(SQUARE, SQUARE, device=device).to(dtype)
    fastest = float("inf")
    for _ in range(10):
        started = time.perf_counter()
        (one @ one)[0, 0].item()
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * SQUARE**3 / fastest
