"""Reference numbers of ReRoPE."""

from __future__ import annotations

import pytest
import torch
from driving import built, layer_of, logits, output
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding, log_n_factor
from pe_cli.strategies._distances import TwoRanges, equally_far

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case, log_n: bool = True) -> PositionEncoding:
    heads, length = case.size("H"), case.size("training_length")
    rope = built("rope", d_model=heads * case.size("d_head"), n_heads=heads, train_length=length)
    window = case.size("window")
    return TwoRanges(rope, window, equally_far(window), length if log_n else None)


def by_head(case: Case, name: str) -> Tensor:
    """(H, T, K), from the file's (T, H, K)."""
    return case.tensor(f"inputs.{name}").movedim(0, 1)


def effective_distance(case: Case) -> None:
    """Read off the angle of one slow pair, which is 1e-4 for each id."""
    rope = built({"name": "rope", "base": 1e8}, d_model=4, n_heads=1)
    window = case.size("window")
    encoding, unit = TwoRanges(rope, window, equally_far(window)), torch.zeros(1, case.size("T"), 4).double()
    first, second = unit.index_fill(2, torch.tensor(1), 1.0), unit.index_fill(2, torch.tensor(3), 1.0)
    along, across = (logits(encoding, layer_of(first, keys))[0, 0] for keys in (first, second))
    theirs = case.tensor("expected.effective_distance_own_formula")
    seen = along.isfinite()
    ours = torch.full_like(along, float("nan"))
    ours[seen] = torch.atan2(across[seen], along[seen]).abs() * 1e4
    assert torch.equal(seen, ~theirs.isnan())
    agree(ours, theirs, abs=case.tolerance())


def compare_logits(case: Case) -> None:
    ours = logits(encoding_of(case), layer_of(by_head(case, "q"), by_head(case, "k")))[0]
    agree(ours, case.tensor("expected.logits"), abs=case.tolerance())


def logits_without_the_factor(case: Case) -> None:
    ours = logits(encoding_of(case, log_n=False), layer_of(by_head(case, "q"), by_head(case, "k")))[0]
    agree(ours, case.tensor("expected.logits_without_logn"), abs=case.tolerance())


def compare_output(case: Case) -> None:
    layer = layer_of(by_head(case, "q"), by_head(case, "k"))
    ours = output(encoding_of(case), layer, by_head(case, "v")[None])[0].movedim(0, 1)
    agree(ours, case.tensor("expected.output"), abs=case.tolerance())


def factor(case: Case) -> None:
    ours = log_n_factor(torch.arange(case.size("T")), case.size("training_length"))
    agree(ours, case.tensor("expected.logn_scale"), abs=case.tolerance())


COMPARISONS = {
    "effective_distance_own_formula": effective_distance,
    "logits": compare_logits,
    "logits_without_logn": logits_without_the_factor,
    "output": compare_output,
    "logn_scale": factor,
}


@pytest.mark.parametrize(("case", "field"), fields("rerope", NOT_COMPARED))
def test_rerope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
