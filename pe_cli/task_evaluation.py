"""Answers by length and strategy: how many are right, in whole and by character."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pe_cli.config import EvaluationConfig
from pe_cli.evaluation import Evaluation, Measurement, window_rows
from pe_cli.experiment import Experiment
from pe_cli.instances import InstanceTargets, TaskData, drawn, evaluation_set, holds, targets_of
from pe_cli.model import Transformer
from pe_cli.protocols import Targets
from pe_cli.scoring import answer_losses
from pe_cli.statistics import UNKNOWN, Estimate, over_windows, share
from pe_cli.tasks.base import Task
from pe_cli.trained import Trained


def longest_trained(experiment: Experiment, task: Task) -> int:
    """The longest length of the task with windows that training had: its own; of one asked besides, 0 where none is."""
    if not isinstance(experiment.data, str) and experiment.data["task"] == task.name:
        return experiment.trained_length
    shown = experiment.training.longest
    lengths = [length for length in range(1, shown + 1) if task.lacking(length) is None]
    fitting = bisect_right(lengths, shown, key=task.fed)
    return lengths[fitting - 1] if fitting else 0


class TaskEvaluation(Evaluation):
    """Measures a trained model on instances of a task, as many at every length."""

    def __init__(self, trained: Trained, data: TaskData, settings: EvaluationConfig) -> None:
        self.corpus = self.data = data
        self.train_length = longest_trained(trained.experiment, data.task)
        self.measured_lengths = settings.lengths
        self.sets: dict[int, InstanceTargets] = {}
        lengths = [length for length in settings.lengths if data.task.lacking(length) is None]
        super().__init__(trained, settings, max(map(data.task.fed, lengths), default=0))

    def targets(self, protocol: str, length: int) -> InstanceTargets:
        """The same instances for every strategy, whatever other lengths there are."""
        if length not in self.sets:
            self.sets[length] = evaluation_set(self.data, length, self.settings.windows)
        return self.sets[length]

    def fed(self, length: int) -> int:
        holds(self.data.task, length)
        return self.data.task.fed(length)

    def cost(self, protocol: str, length: int) -> int:
        """As that of a text; all instances of a length are alike, and one is drawn, not the set of them."""
        holds(self.data.task, length)
        one = drawn(self.data.task, length, "cost")
        return self.settings.windows * (len(one.text) - 1) * (1 if one.decoy is None else 2)

    def passed(self, model: Transformer, targets: Targets, advance: Callable[[int], None]) -> Measurement:
        assert isinstance(targets, InstanceTargets)
        found = answer_losses(model, targets, self.settings.batch_size, advance)
        margins = None
        if has_decoys(targets):
            wrong = tuple(replace(instance, answer=instance.decoy or "") for instance in targets.instances)
            other = answer_losses(model, targets_of(self.data, wrong), self.settings.batch_size, advance)
            margins = np.array([b.sum() - a.sum() for a, b in zip(found.losses, other.losses, strict=True)])
        losses, right = tuple(found.losses), tuple(found.right)
        return Measurement("ok", None, targets, losses, found.largest_id, right=right, margins=margins)

    def answers(self, measured: Measurement) -> tuple[Estimate, Estimate, Estimate]:
        if not measured.right:
            return UNKNOWN, UNKNOWN, UNKNOWN
        right = np.array([answer.sum() for answer in measured.right])
        sizes = np.array([len(answer) for answer in measured.right])
        exact = share(int((right == sizes).sum()), len(sizes))
        margin = UNKNOWN if measured.margins is None else over_windows(measured.margins, np.ones(len(sizes)))
        return characters_right(right, sizes), exact, margin

    def window_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        assert isinstance(measured.targets, InstanceTargets)
        margins = [None] * len(measured.right) if measured.margins is None else measured.margins.tolist()
        rows = window_rows(keys, measured)
        parts = zip(rows, measured.right, margins, measured.targets.instances, strict=True)
        return [
            {**row, "right_chars": int(right.sum()), "margin": margin, "depth": instance.depth}
            for row, right, margin, instance in parts
        ]

    def position_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        """Mean loss of the character predicted at each place that is scored in any instance."""
        assert isinstance(measured.targets, InstanceTargets)
        scored = measured.targets.rows.scored
        sums, counts = np.zeros(scored.shape[1]), scored.sum(axis=0)
        for places, losses in zip(scored, measured.losses, strict=True):
            sums[places] += losses
        return [
            {**keys, "position": int(place), "loss": sums[place] / counts[place], "scored_chars": int(counts[place])}
            for place in np.flatnonzero(counts)
        ]


def has_decoys(targets: InstanceTargets) -> bool:
    return all(instance.decoy is not None for instance in targets.instances)


def characters_right(right: np.ndarray, sizes: np.ndarray) -> Estimate:
    """The share of right characters. Those of one answer are not independent: the interval is over instances.

    Where all or none are right, a bootstrap has no width; the interval is then that of as many whole answers.
    """
    if right.sum() in (0, sizes.sum()):
        return share(len(sizes) if right.sum() else 0, len(sizes))
    found = over_windows(right.astype(float), sizes)
    return Estimate(found.value, max(0.0, found.low), min(1.0, found.high))
