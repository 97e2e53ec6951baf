"""shifted: SHAPE."""

from __future__ import annotations

import pytest
import torch
from sampled import WINDOW, evaluated_ids, sampled, trained_ids

from pe_cli.errors import ConfigError

BLOCK = {"name": "shifted", "shifts": 4}


def test_every_window_is_counted_from_one_of_the_shifts() -> None:
    ids = trained_ids(sampled(BLOCK), batch=400)
    assert torch.equal(ids - ids[:, :1], torch.arange(float(WINDOW)).expand(400, -1))
    starts, counts = ids[:, 0].unique(return_counts=True)
    assert starts.tolist() == [0, 1, 2, 3]
    assert float((counts - 100).abs().max()) < 4 * 75**0.5


@pytest.mark.parametrize("start", [0, 3, 4])
def test_evaluation_starts_where_it_is_told(start: int) -> None:
    encoding = sampled({**BLOCK, "start": start}, "sinusoidal")
    assert torch.equal(evaluated_ids(encoding, 20), torch.arange(20.0) + start)
    assert encoding.trained_length(WINDOW) == WINDOW + 3 - start
    # the released code starts one beyond the last shift: one id is never trained
    assert encoding.spec.max_position == WINDOW + 3 + (start == 4)
    assert sampled({**BLOCK, "start": start}, "alibi").trained_length(WINDOW) == WINDOW


def test_ids_stay_equally_spaced() -> None:
    encoding = sampled({**BLOCK, "start": 2}, "alibi")
    tokens = torch.zeros(2, 9, dtype=torch.long)
    assert encoding.positions(tokens).step == encoding.positions(tokens, torch.Generator()).step == 1


def test_a_start_that_training_never_comes_near_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^positions\.start: must be at most shifts 4, not 5"):
        sampled({**BLOCK, "start": 5})
