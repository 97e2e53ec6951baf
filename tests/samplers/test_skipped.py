"""skipped: PoSE with two chunks."""

from __future__ import annotations

import pytest
import torch
from sampled import WINDOW, evaluated_ids, sampled, trained_ids

from pe_cli.errors import ConfigError

BLOCK = {"name": "skipped", "max_position": 20}


def test_a_window_jumps_once_in_its_first_half() -> None:
    ids = trained_ids(sampled(BLOCK), batch=4000)
    skip = ids[:, -1] - (WINDOW - 1)
    steps = ids.diff(dim=1)
    assert torch.equal(ids[:, 0], torch.zeros(4000))
    assert torch.equal((steps != 1).sum(dim=1), (skip > 0).long())
    cuts, counts = (steps[skip > 0] != 1).long().argmax(dim=1).add(1).unique(return_counts=True)
    assert cuts.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]  # (16 + 1) // 2
    assert float(counts.min()) > 0.8 * float(counts.float().mean())
    skips, counts = skip.unique(return_counts=True)
    assert skips.tolist() == [0, 1, 2, 3, 4]  # up to the last of the 20 ids
    assert float((counts - 800).abs().max()) < 4 * (4000 * 0.2 * 0.8) ** 0.5


def test_evaluation_counts_from_zero_to_any_length() -> None:
    encoding = sampled(BLOCK, "sinusoidal")
    assert torch.equal(evaluated_ids(encoding, 50), torch.arange(50.0))
    assert encoding.trained_length(WINDOW) == sampled(BLOCK, "alibi").trained_length(WINDOW) == 20


def test_too_few_ids_for_a_window_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^positions\.max_position: 9 ids are too few"):
        sampled({"name": "skipped", "max_position": 9})
