"""What each strategy comes to with the ids of each sampler, far beyond all that training shows."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from longer import added
from sampled import BLOCKS, WINDOW, sampled
from stand_in import SPEC, evaluation_of, noise, quietly
from strategy_cases import ON_ANY

from pe_cli import strategies
from pe_cli.model import new_model

IDS = {"interpolate", "nearest"}
REPEATED = {"mirror", "repeat_last", "wrap"}
"""They give ids again, which means something where an id by itself does."""
TABLES = {"cubic", "fourier", "hierarchical", "mean", "random", "zero"}
"""They make more rows to be added to the embeddings."""
ROTATIONS = {
    "dynamic_ntk", "leaky_rerope", "llama3", "lm_infinite", "ntk", "ntk_by_parts", "rerope", "self_extend", "yarn",
}  # fmt: skip
MEANING = {
    "learned": {*ON_ANY, *IDS, *REPEATED, *TABLES},
    "sinusoidal": {*ON_ANY, *IDS, *REPEATED, *TABLES},
    "rope": {*ON_ANY, *IDS, *ROTATIONS},
    "t5": {*ON_ANY, "nearest"},  # ids between whole numbers mean nothing to it
}
"""By encoding; the others are refused, and longrope is without its factors."""
WITHOUT_NEW_IDS = {*ON_ANY} - {"truncate"}
SAMPLERS = {"sequential": {"name": "sequential"}} | {
    name: BLOCKS[name] for name in ("randomized", "shifted", "shifted, later start", "scaled", "skipped")
}

PAIRS = [pair for pair in product(MEANING, SAMPLERS) if pair != ("t5", "scaled")]  # which is refused as a config


def expected(encoding: str, sampler: str) -> dict[str, str]:
    """A table has no rows for 64 ids, and 40 ids cannot be drawn 64 times, unless a strategy gives other ids."""
    missing = WITHOUT_NEW_IDS if encoding == "learned" or sampler == "randomized" else set()
    return {
        name: "undefined" if name in missing else "ok" if name in MEANING[encoding] else "refused"
        for name in strategies.names()
    }


@pytest.mark.parametrize(("encoding", "sampler"), PAIRS)
def test_the_status_of_every_strategy(encoding: str, sampler: str) -> None:
    model = new_model(SPEC, encoding, seed=1, positions=SAMPLERS[sampler])
    evaluation = evaluation_of(model, noise(2000), encoding, lengths=[64], windows=2, strategies=strategies.names())
    rows = evaluation.run(quietly).extrapolation
    assert {row["strategy"]: row["status"] for row in rows} == expected(encoding, sampler)


@pytest.mark.parametrize("strategy", sorted(TABLES))
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_longer_table_begins_with_what_is_added_without_a_strategy(sampler: str, strategy: str) -> None:
    """As many characters as training shows ids for are told what they are told in a window of that length; cubic
    lays the same rows further apart, from the first to the last."""
    encoding = sampled(SAMPLERS[sampler], "learned")
    trained = encoding.trained_length(WINDOW)
    own = added(encoding, trained)
    found = added(strategies.apply(strategy, encoding, WINDOW, 2 * trained), 2 * trained)
    kept = found[[0, -1]] if strategy == "cubic" else found[:trained]
    torch.testing.assert_close(kept, own[[0, -1]] if strategy == "cubic" else own, atol=1e-5, rtol=0)
    if strategy == "zero":
        assert not found[trained:].any()
    assert own.std(dim=0).min() > 0
