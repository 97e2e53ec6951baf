"""Losses on the held-out part of a text, and the gain by context beyond the training length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pe_cli import strategies
from pe_cli.config import EvaluationConfig
from pe_cli.corpus import Corpus
from pe_cli.evaluation import Evaluation, Measurement, sums_of
from pe_cli.lengths import windows_of
from pe_cli.model import Transformer
from pe_cli.protocols import Targets, Text
from pe_cli.scoring import character_losses
from pe_cli.statistics import UNKNOWN, Estimate, over_windows
from pe_cli.trained import Trained


class TextEvaluation(Evaluation):
    """Measures a trained model on the held-out part of a text."""

    def __init__(self, trained: Trained, corpus: Corpus, settings: EvaluationConfig) -> None:
        self.corpus, self.ids = corpus, corpus.ids
        self.text = Text(len(corpus.ids), corpus.held_start)
        self.train_length = trained.experiment.training.longest
        self.measured_lengths = tuple(sorted({self.train_length, *settings.lengths}))
        super().__init__(trained, settings, max(settings.lengths))

    def targets(self, protocol: str, length: int) -> Targets:
        return windows_of(self.text, protocol, length, self.settings)

    def passed(self, model: Transformer, targets: Targets, advance: Callable[[int], None]) -> Measurement:
        losses, largest_id = character_losses(model, self.ids, targets, self.settings.batch_size, advance)
        return Measurement("ok", None, targets, tuple(losses), largest_id)

    def gain(
        self, strategy: strategies.Entry, protocol: str, measured: Measurement, advance: Callable[[int], None]
    ) -> Estimate:
        base = self.measure(strategy, self.train_length, protocol, advance)
        return UNKNOWN if base.targets is None else paired_gain(base, measured)

    def position_rows(self, keys: dict[str, Any], measured: Measurement) -> list[dict[str, Any]]:
        """Mean loss of the character predicted at each place of the window, counted from 0."""
        targets = measured.targets
        assert targets is not None
        length = int(targets.lengths.max())
        sums, counts = np.zeros(length), np.zeros(length, dtype=int)
        for own_length, scored, loss in zip(targets.lengths, targets.scored, measured.losses, strict=True):
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


def paired_gain(base: Measurement, longer: Measurement) -> Estimate:
    """loss(train_length) − loss(length) on the same characters, paired by the windows of the larger length."""
    assert base.targets is not None and longer.targets is not None  # noqa: PT018
    pieces = min(base.targets.pieces, longer.targets.pieces, key=len)
    return over_windows(sums_of(base.characters - longer.characters, pieces), pieces)
