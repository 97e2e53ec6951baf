"""Losses of single characters: the same as from whole windows, one by one, whatever the batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from largest import LargestTensor
from stand_in import SPEC, KnownLoss, cycle, model_of, noise

from pe_cli import attention, strategies
from pe_cli.protocols import Targets, Text, non_overlapping, same_targets, sliding
from pe_cli.scoring import batched, character_losses

CORPUS = noise(2000)
TEXT = Text(2000, 1800)
BLOCKS: list[Any] = [
    "none", "sinusoidal", "alibi", "rope", "t5", "shaw", "fox", {"name": "sliding_window", "encoding": "rope"},
]  # fmt: skip


def ragged(length: int) -> Targets:
    """Windows of one length and a shorter last one: 200 characters do not divide by these lengths."""
    targets = non_overlapping(TEXT, length)
    assert len(set(targets.lengths.tolist())) == 2
    return targets


def mean_loss(model: Any, targets: Targets, batch_size: int) -> float:
    losses, _ = character_losses(model, CORPUS.ids, targets, batch_size)
    return float(np.concatenate(losses).mean())


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_the_batch_size_changes_no_metric(block: Any) -> None:
    model = model_of(block)
    for targets in (same_targets(TEXT, 48, 11, 8), ragged(48), sliding(TEXT, 48, 7, 8)):
        found = [mean_loss(model, targets, size) for size in (1, 3, 8, 1000)]
        assert found == pytest.approx([found[0]] * 4, abs=1e-5)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_losses_are_those_of_each_window_by_itself(block: Any) -> None:
    """All logits of one window, −log softmax in float64, and of those the last ones that count."""
    model = model_of(block).eval()
    targets = same_targets(TEXT, 40, 5, 8)
    losses, _ = character_losses(model, CORPUS.ids, targets, batch_size=3)
    for end, loss in zip(targets.ends, losses, strict=True):
        window = torch.from_numpy(CORPUS.ids[end - 41 : end].astype(np.int64))
        with torch.no_grad():
            likely = model(window[None, :-1])[0].double().log_softmax(-1)
        alone = [-likely[place, window[place + 1]].item() for place in range(32, 40)]
        assert loss == pytest.approx(alone, abs=2e-5)


def test_a_loss_stays_with_its_window_and_place() -> None:
    """Costs 1, 2, 3, … by context: a window of T gives them in order, and so does the shorter rest."""
    targets = ragged(48)
    losses, _ = character_losses(KnownLoss(float), cycle(2000).ids, targets, batch_size=3)  # type: ignore[arg-type]
    assert [len(loss) for loss in losses] == [48, 48, 48, 48, 8]
    for loss in losses:
        assert loss == pytest.approx(np.arange(1, len(loss) + 1), rel=1e-5)
        assert loss.dtype == np.float64


def test_one_character_of_context_is_enough() -> None:
    for block in ("rope", {"name": "sliding_window", "encoding": "rope", "window": 1}):
        ends = np.array([1900, 1950])
        ones = np.array([1, 1])
        losses, largest = character_losses(model_of(block), CORPUS.ids, Targets(ends, ones, ones), batch_size=1)
        assert np.isfinite(np.concatenate(losses)).all()
        assert largest == 0


def test_dropout_is_off_and_on_again() -> None:
    model = model_of("rope")
    model.dropout.p = 0.5
    model.train()
    targets = same_targets(TEXT, 32, 4, 8)
    assert mean_loss(model, targets, 4) == mean_loss(model, targets, 4)
    assert model.training
    with pytest.raises(IndexError):
        character_losses(model, CORPUS.ids, replace(targets, ends=targets.ends + 2000), 4)
    assert model.training


def test_losses_are_in_float32_inside_an_autocast() -> None:
    model, targets = model_of("alibi"), same_targets(TEXT, 32, 4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert mean_loss(model, targets, 4) == mean_loss(model, targets, 4)
        inside = mean_loss(model, targets, 4)
    assert inside == mean_loss(model, targets, 4)


def test_the_characters_fed_are_told() -> None:
    told: list[int] = []
    targets = ragged(48)
    character_losses(model_of("none"), CORPUS.ids, targets, 3, told.append)
    assert sum(told) == 200
    assert len(told) == 3  # 48 + 48 + 48, 48, and the rest


def test_groups_share_their_shape_and_hold_each_window_once() -> None:
    lengths = np.array([5, 9, 5, 5, 9, 5])
    scored = np.array([2, 2, 2, 4, 2, 2])
    groups = batched(Targets(np.arange(6) + 100, lengths, scored), batch_size=2)
    assert sorted(np.concatenate(groups).tolist()) == list(range(6))
    for group in groups:
        assert len(group) <= 2
        assert len({(lengths[window], scored[window]) for window in group}) == 1


@pytest.mark.parametrize(("strategy", "largest"), [("none", 63.0), ("repeat_last", 15.0), ("interpolate", 15.0)])
def test_the_largest_id_is_the_one_that_the_model_was_given(strategy: str, largest: float) -> None:
    model = model_of("sinusoidal")
    model = model.using(strategies.apply(strategy, model.encoding, 16, 64))
    _, found = character_losses(model, CORPUS.ids, same_targets(TEXT, 64, 3, 8), 2)
    assert found == largest


@pytest.mark.parametrize("block", ["rope", "alibi", "t5", "fox", "shaw"])
def test_long_windows_never_hold_a_whole_square_of_scores(block: str) -> None:
    """4096 × 4096 scores of two heads take 128 MiB; what an operation holds keeps to the budget of a block."""
    length = 4096
    corpus = noise(20 * length + 200)
    targets = same_targets(Text(len(corpus.ids), corpus.held_start), length, 1, 8)
    with LargestTensor() as largest:
        character_losses(model_of(block, replace(SPEC, d_model=4)), corpus.ids, targets, batch_size=1)
    assert 4 * length * SPEC.n_heads <= largest.bytes <= attention.BLOCK_BYTES
