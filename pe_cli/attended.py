"""Where the scored queries of an evaluation look: entropy, distance and first characters, by layer and head.

A loss that rises beyond the training length has a cause in the attention weights: they go flat over more keys, they
stay at distances that training never showed, or they leave the first characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import allowed, cut, most_rows, weights_of
from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block, LayerView
from pe_cli.evaluation import lost
from pe_cli.inspection import waves_of
from pe_cli.protocols import Targets
from pe_cli.scoring import batched
from pe_cli.text_evaluation import TextEvaluation

PROTOCOL = "same_targets"
"""Its queries are the same characters at every length."""
FIRST = 4
"""Characters at the beginning of a window that trained models often look at for want of anything better."""
MEASURES = ("entropy", "relative_entropy", "distance", "first", "attended")
COLUMNS = ("strategy", "length", "layer", "head", *MEASURES, "queries")


@dataclass
class Attended:
    """The rows of attention.csv, and why some are missing."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


class Watching(Wrapper):
    """The same encoding; it adds up what the last `scored` queries of each layer look at, as the model shows them."""

    def __init__(self, inner: PositionEncoding, scored: int) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.scored = scored
        self.sums: dict[int, Tensor] = {}
        """By layer (H, measures), and beside it how many queries each sum is of."""
        self.counts: dict[int, Tensor] = {}

    def prepare(self, layer: LayerView) -> Any:
        state = self.inner.prepare(layer)
        q, k = self.inner.rotate(layer)
        batch, heads, length = q.shape[:3]
        with torch.no_grad():
            for rows in cut(slice(length - self.scored, length), most_rows(batch * heads * length, q.device)):
                keys = slice(0, rows.stop)
                block = Block(layer, state, q[:, :, rows], k[:, :, keys], rows, keys, self.inner)
                values = measured(self.inner, block)
                known = values.isfinite()
                sums, counts = values.where(known, 0.0).sum((0, 2)), known.sum((0, 2))
                self.sums[layer.index] = self.sums.get(layer.index, 0.0) + sums
                self.counts[layer.index] = self.counts.get(layer.index, 0) + counts
        return state


def measured(encoding: PositionEncoding, block: Block) -> Tensor:
    """MEASURES of each query of a block, (B, H, Q, measures) in float64, by the written-out definition of attention.

    Weights that do not add up to 1 are divided by their sum, `attended`, but for the weight on the first characters.
    A query that attends to nothing has nothing else to measure, one with a single key no relative entropy: nan.
    """
    weights = weights_of(encoding, block).float()
    keys = allowed(encoding, block).expand(weights.shape).sum(-1)
    attended = weights.sum(-1)
    share = weights / attended[..., None]  # nan where nothing is attended to
    entropy = torch.special.entr(share).sum(-1)
    distance = torch.einsum("bhqk,qk->bhq", share, block.offset.float())
    first = (weights * (block.key_index < FIRST)).sum(-1)
    relative = (entropy / keys.log()).where(keys > 1, math.nan)
    return torch.stack([entropy, relative, distance, first, attended], dim=-1).double()


def measure(evaluation: TextEvaluation, advance: Callable[[int], None]) -> Attended:
    """Every strategy at every length of the settings, and at the training length; only same_targets has its queries.

    `advance` is told the characters fed.
    """
    found = Attended()
    known: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for strategy in evaluation.settings.strategies:
        called = strategies.label(strategy)
        for length in evaluation.measured_lengths:
            try:
                targets = evaluation.targets(PROTOCOL, length)
                effective, encoding = evaluation.changed(strategy, length)
                if (effective, length) not in known:
                    known[effective, length] = watched(evaluation, encoding, targets, advance)
            except Exception as error:
                found.reasons.append(f"{called} at {length}: {lost(error, length).reason}")
                continue
            found.rows += [{"strategy": called, "length": length, **row} for row in known[effective, length]]
    return found


def planned_chars(evaluation: TextEvaluation) -> int:
    """Characters that `measure` feeds at most."""
    return evaluation.planned_chars([PROTOCOL])[PROTOCOL]


def watched(
    evaluation: TextEvaluation, encoding: PositionEncoding, targets: Targets, advance: Callable[[int], None]
) -> list[dict[str, Any]]:
    """A row for each layer and head: means over the scored queries of all windows, and over the draws of a sampler."""
    length, scored = int(targets.lengths[0]), int(targets.scored[0])
    watching = [Watching(one, scored) for one in encoding.draws(length)]
    models = [evaluation.trained.model.using(one) for one in watching]
    device = evaluation.device
    with torch.inference_mode(), torch.autocast(device.type, enabled=False):
        for group in batched(targets, evaluation.settings.batch_size):
            windows = targets.ends[group][:, None] + np.arange(-length - 1, -1)
            text = torch.from_numpy(evaluation.ids[windows].astype(np.int64)).to(device)
            for model in models:
                model(text, scored=scored)
            advance(length * len(group))
    queries = len(targets.ends) * scored
    rows = []
    for layer in sorted(watching[0].sums):
        sums = torch.stack([one.sums[layer] for one in watching]).sum(0)
        means = (sums / torch.stack([one.counts[layer] for one in watching]).sum(0)).tolist()
        for head, values in enumerate(means):
            of_head = {
                name: value if math.isfinite(value) else None for name, value in zip(MEASURES, values, strict=True)
            }
            rows.append({"layer": layer, "head": head, **of_head, "queries": queries})
    return rows


def waves_in_words(encoding: PositionEncoding, train_length: int) -> list[str]:
    """What is said of the waves of each rotary part.

    Of a wave that never completed a turn training has shown a part of all angles, and every longer distance is a
    new one.
    """
    return [
        f"{part or encoding.name}: {waves.incomplete} of {waves.finite} waves never completed a turn in training: they "
        f"are longer than the {waves.seen} characters that it showed"
        for part, waves in waves_of(encoding, train_length).items()
    ]
