"""randomized: subsets of a wide range, also in evaluation, where losses are means over draws."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from driving import SPEC
from sampled import WINDOW, evaluated_ids, sampled, tokens, trained_ids
from works import draws

from pe_cli import strategies
from pe_cli.errors import ConfigError, PositionRangeError
from pe_cli.model import new_model
from pe_cli.peaks import peak
from pe_cli.protocols import Targets
from pe_cli.samplers.randomized import subsets
from pe_cli.scoring import character_losses

BLOCK = {"name": "randomized", "max_position": 40}


def test_every_subset_is_as_likely_as_any_other() -> None:
    drawn = subsets(6000, 2, 4, torch.Generator().manual_seed(0))
    kinds, counts = drawn.unique(dim=0, return_counts=True)
    assert kinds.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    spread = math.sqrt(6000 * 1 / 6 * 5 / 6)
    assert float((counts - 1000).abs().max()) < 4 * spread


def test_subsets_of_millions_take_the_memory_of_one() -> None:
    found = peak(partial(draws, 32, 8, 2**21), torch.device("cpu"), 1)
    assert found.error is None
    assert found.bytes is not None
    assert found.bytes < 6 * 2**21 * 8


@pytest.mark.parametrize(("per", "kinds"), [("batch", 1), ("example", 3)])
def test_windows_of_a_batch_share_their_ids_unless_asked(per: str, kinds: int) -> None:
    ids = trained_ids(sampled({**BLOCK, "per": per}))
    assert len(ids.unique(dim=0)) == kinds


def test_evaluation_draws_by_length_and_number_of_the_draw() -> None:
    encoding = sampled({**BLOCK, "evaluation_draws": 4})
    drawn = {tuple(evaluated_ids(one, length).tolist()) for length in (20, 21) for one in encoding.draws(length)}
    assert len(drawn) == 8
    assert all(len(set(ids)) == len(ids) and max(ids) <= 39 for ids in drawn)
    assert torch.equal(evaluated_ids(encoding, 20), evaluated_ids(encoding.draws(20)[0], 20))


def test_all_ids_are_one_draw_and_more_are_undefined() -> None:
    encoding = sampled(BLOCK)
    assert torch.equal(evaluated_ids(encoding, 40), torch.arange(40.0))
    assert len(encoding.draws(39)) == 3
    assert len(encoding.draws(40)) == len(encoding.draws(41)) == 1
    with pytest.raises(PositionRangeError, match="randomized draws from 40 ids, and a window of 41 characters"):
        encoding.positions(tokens(41))


def test_beyond_all_ids_a_strategy_counts() -> None:
    changed = strategies.apply("repeat_last", sampled(BLOCK, "learned"), WINDOW, 50)
    assert torch.equal(evaluated_ids(changed, 50), torch.arange(50.0).clamp(max=39))


def test_a_loss_is_the_mean_of_the_losses_of_the_draws() -> None:
    model = new_model(SPEC, "learned", 0, positions=BLOCK).eval()
    with torch.no_grad():
        model.encoding.get_parameter("inner.table").normal_(generator=torch.Generator().manual_seed(1))
    ids = tokens(60, batch=1)[0].numpy()
    ends = np.array([40, 50, 60])
    targets = Targets(ends, np.full(3, 24), np.full(3, 5))
    losses, largest = character_losses(model, ids, targets, batch_size=2)
    windows = torch.from_numpy(np.stack([ids[end - 25 : end] for end in ends]))
    singly, most = [], []
    for one in model.encoding.draws(24):
        with torch.no_grad():
            likelihood = model.using(one)(windows[:, :-1]).log_softmax(dim=-1)
        singly.append(-likelihood.gather(-1, windows[:, 1:, None])[:, -5:, 0])
        most.append(float(evaluated_ids(one, 24)[-1]))
    expected = torch.stack(singly).mean(dim=0)
    assert float((singly[0] - singly[1]).abs().max()) > 0.01
    torch.testing.assert_close(torch.tensor(np.stack(losses)), expected.double(), atol=1e-5, rtol=0)
    assert largest == max(most)
    together, _ = character_losses(model, ids, targets, batch_size=3)
    np.testing.assert_allclose(np.stack(losses), np.stack(together), atol=1e-5)


def test_too_few_ids_for_a_window_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^positions\.max_position: 15 ids are too few .* of 16 characters; 16"):
        sampled({**BLOCK, "max_position": 15})


def test_draws_of_evaluation_are_at_most_a_thousand() -> None:
    assert len(sampled({**BLOCK, "evaluation_draws": 1000}).draws(20)) == 1000
    with pytest.raises(ConfigError, match=r"evaluation_draws: must be less than or equal to 1000, not 1001"):
        sampled({**BLOCK, "evaluation_draws": 1001})
