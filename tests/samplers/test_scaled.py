"""scaled: CAPE."""

from __future__ import annotations

import math

import pytest
import torch
from sampled import WINDOW, evaluated_ids, sampled, trained_ids

BLOCK = {"name": "scaled", "max_shift": 3, "max_jitter": 0, "max_scale": 2}


def test_windows_are_stretched_and_shifted() -> None:
    ids = trained_ids(sampled(BLOCK), batch=2000).double()
    scale = (ids[:, -1] - ids[:, 0]) / (WINDOW - 1)
    torch.testing.assert_close(
        ids, ids[:, :1] + scale[:, None] * torch.arange(WINDOW), atol=1e-4, rtol=0, check_dtype=False
    )
    shift = ids[:, 0] / scale - 3  # Δ, as ids are counted from 3
    logarithm = scale.log() / math.log(2)
    for drawn in (shift / 3, logarithm):  # uniform from −1 to 1, with the variance 1/3
        assert -1 - 1e-5 <= float(drawn.min()) < -0.99
        assert 0.99 < float(drawn.max()) <= 1 + 1e-5
        assert float(drawn.mean()) == pytest.approx(0, abs=4 / math.sqrt(3 * 2000))
        assert float(drawn.var()) == pytest.approx(1 / 3, abs=0.03)
    assert abs(float(torch.corrcoef(torch.stack((shift, logarithm)))[0, 1])) < 0.1


def test_every_character_has_a_jitter_of_its_own() -> None:
    jitter = trained_ids(sampled({"name": "scaled", "max_shift": 0, "max_scale": 1}), batch=500)
    jitter = jitter - 0.5 - torch.arange(WINDOW)
    assert -0.5 <= float(jitter.min()) < -0.49
    assert 0.49 < float(jitter.max()) <= 0.5
    assert float(jitter.std()) == pytest.approx(math.sqrt(1 / 12), abs=0.01)
    assert abs(float(torch.corrcoef(jitter.T)[0, 1])) < 0.2


def test_evaluation_counts_from_the_largest_shift_and_jitter() -> None:
    encoding = sampled({"name": "scaled", "max_shift": 3, "max_jitter": 0.25})
    assert torch.equal(evaluated_ids(encoding, 20), torch.arange(20.0) + 3.25)
    assert encoding.positions(torch.zeros(1, 5, dtype=torch.long)).step == 1


def test_the_largest_id_decides_the_rows_and_the_trained_length() -> None:
    encoding = sampled(BLOCK, "learned")
    assert encoding.spec.max_position == 2 * (WINDOW - 1 + 6) + 2  # 2 · (15 + 3 + 3) = 42 is the largest id
    assert encoding.trained_length(WINDOW) == 42 - 3 + 1  # the ids 3 … 42
    assert sampled(BLOCK, "alibi").trained_length(WINDOW) == 2 * (WINDOW - 1) + 1
