"""Losses of single characters: the one place where a model meets the windows of a protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.instances import InstanceTargets
from pe_cli.model import Transformer
from pe_cli.protocols import Targets


def character_losses(
    model: Transformer,
    ids: np.ndarray,
    targets: Targets,
    batch_size: int,
    advance: Callable[[int], None] = lambda chars: None,
) -> tuple[list[np.ndarray], float]:
    """Negative log-likelihoods in nats of the scored characters of each window (float64), and the largest id fed.

    `ids` is the whole text. The model runs in float32 and evaluation mode; `advance` is told the characters fed. Where
    ids are drawn at random, the losses are means over the draws of the sampler.
    """
    largest_id = 0.0
    losses = [np.empty(0)] * len(targets.ends)
    with evaluating(model) as device:
        for group in batched(targets, batch_size):
            length, scored = int(targets.lengths[group[0]]), int(targets.scored[group[0]])
            windows = targets.ends[group][:, None] + np.arange(-length - 1, 0)
            text = torch.from_numpy(ids[windows].astype(np.int64)).to(device)
            drawn = [model.using(encoding) for encoding in model.encoding.draws(length)]
            means = np.stack([passed(one, text, scored)[0] for one in drawn]).mean(axis=0)
            for window, loss in zip(group, means, strict=True):
                losses[window] = loss
            largest_id = max(largest_id, *(largest_fed(one, text) for one in drawn))
            advance(length * len(group))
    return losses, largest_id


@dataclass(frozen=True)
class Answers:
    """Of the scored characters of each instance: losses in nats (float64), and whether each was the likeliest one."""

    losses: list[np.ndarray]
    right: list[np.ndarray]
    largest_id: float


def answer_losses(
    model: Transformer,
    targets: InstanceTargets,
    batch_size: int,
    advance: Callable[[int], None] = lambda chars: None,
) -> Answers:
    """Losses of the characters that count in each instance, given all the right ones before them.

    To write the likeliest character every time gives the whole answer exactly where each of its characters is the
    likeliest after the right ones before it. So one pass tells what greedy generation would write, where the ids of a
    character do not depend on what follows: those of `randomized`, `interpolate` and the like are of the whole window
    here, and windows may be shown in pieces. Equal logits count as a mistake unless the right character comes first in
    the alphabet, as they would be there. Where ids are drawn at random, the instances take the draws of the sampler in
    turn.
    """
    count = len(targets.lengths)
    losses, right = [np.empty(0)] * count, [np.empty(0, dtype=bool)] * count
    largest_id = 0.0
    with evaluating(model) as device:
        for one, rows, length in in_turn(model, targets.lengths, batch_size):
            text = torch.from_numpy(targets.rows.tokens[rows, : length + 1]).to(device)
            scored = targets.rows.scored[rows, :length]
            last = length - int(scored.argmax(axis=1).min())  # no logits before the first that counts
            costs, likeliest = passed(one, text, last)
            for place, row in enumerate(rows):
                counts = scored[place, -last:]
                losses[row], right[row] = costs[place, counts], likeliest[place, counts]
            largest_id = max(largest_id, largest_fed(one, text))
            advance(length * len(rows))
    return Answers(losses, right, largest_id)


def in_turn(model: Transformer, lengths: np.ndarray, batch_size: int) -> Iterator[tuple[Transformer, np.ndarray, int]]:
    """The model in each draw of its ids, with a batch of the rows of one length that fall to that draw."""
    for length in np.unique(lengths).tolist():
        same = np.flatnonzero(lengths == length)
        drawn = model.encoding.draws(length)
        for number, encoding in enumerate(drawn):
            rows = same[number :: len(drawn)]
            for start in range(0, len(rows), batch_size):
                yield model.using(encoding), rows[start : start + batch_size], length


@contextmanager
def evaluating(model: Transformer) -> Iterator[torch.device]:
    """The device of a model that runs in float32 and evaluation mode, and is put back as it was."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), torch.autocast(device.type, enabled=False):
            yield device
    finally:
        model.train(was_training)


def passed(model: Transformer, text: Tensor, scored: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the last characters of windows (B, T + 1): losses (B, scored) in float64, and which were the likeliest."""
    logits = model(text[:, :-1], scored=scored)
    wanted = text[:, -scored:]
    flat = F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten(), reduction="none")
    return flat.view_as(wanted).double().cpu().numpy(), (logits.argmax(dim=-1) == wanted).cpu().numpy()


def largest_fed(model: Transformer, text: Tensor) -> float:
    """The largest id that a model is given with windows (B, T + 1), of parts of a composition that see any."""
    encoding = model.encoding
    shown = text[:, :-1] if encoding.piece is None else text[:, -1 - encoding.piece : -1]
    positions = encoding.positions(shown)
    return max(float(leaf.ids.max()) for leaf in encoding.seen(positions) or positions.leaves())


def batched(targets: Targets, batch_size: int) -> list[np.ndarray]:
    """Indices of windows in groups of at most `batch_size` that share length and scored characters."""
    groups: list[np.ndarray] = []
    shapes = np.stack([targets.lengths, targets.scored], axis=1)
    for shape in np.unique(shapes, axis=0):
        same = np.flatnonzero((shapes == shape).all(axis=1))
        groups.extend(same[start : start + batch_size] for start in range(0, len(same), batch_size))
    return groups
