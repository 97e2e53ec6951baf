"""Reference numbers of LM-Infinite: a mask in the shape of a Λ, and one distance for all that is outside its window."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import block_of, built, layer_of, logits, output, weights
from reference_cases import Case, agree, run_sized, sized_fields
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import allowed
from pe_cli.encodings.base import PositionEncoding

OPTION = "an option of that group"
NOT_COMPARED = {
    "w#_g#_limit#.local_branch": OPTION,
    "w#_g#_limit#.global_branch": OPTION,
    "w#_g#_limit#.limit_distance": OPTION,
}


def limited(case: Case, field: str, inner: object, **sizes: Any) -> PositionEncoding:
    group = case.at("expected." + field.split(".")[0])
    sizes = {"train_length": 4, **sizes}
    block = {
        "name": "lm_infinite",
        "first": group["global_branch"],
        "window": group["local_branch"],
        "distance": group["limit_distance"],
    }
    return strategies.apply(block, built(inner, **sizes), 4, case.size("T"))


def sizes_of(case: Case) -> dict[str, Any]:
    return {"n_heads": case.size("H"), "d_model": case.size("H") * case.size("d_head")}


def compare_mask(case: Case, field: str) -> None:
    encoding = limited(case, field, "rope", **sizes_of(case))
    ours = allowed(encoding, block_of(encoding, layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))))
    agree(ours, case.tensor(f"expected.{field}"))


def effective_distance(case: Case, field: str) -> None:
    """Read off the angle of one slow pair, which is 1e-4 for each id."""
    encoding = limited(case, field, {"name": "rope", "base": 1e8}, d_model=4, n_heads=1)
    unit = torch.zeros(1, case.size("T"), 4).double()
    first, second = unit.index_fill(2, torch.tensor(1), 1.0), unit.index_fill(2, torch.tensor(3), 1.0)
    along, across = (logits(encoding, layer_of(first, keys))[0, 0] for keys in (first, second))
    compare_seen(case, field, torch.atan2(across, along).abs() * 1e4, along.isfinite())


def compare_weights(case: Case, field: str) -> None:
    encoding = limited(case, field, "rope", **sizes_of(case))
    ours = weights(encoding, layer_of(case.tensor("inputs.q"), case.tensor("inputs.k")))[0]
    theirs = case.tensor(f"expected.{field}")
    agree(ours, theirs, **case.limits())
    assert (ours[theirs.isnan()] == 0).all()


def compare_output(case: Case, field: str) -> None:
    layer = layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))
    ours = output(limited(case, field, "rope", **sizes_of(case)), layer, case.tensor("inputs.v")[None])[0]
    agree(ours, case.tensor(f"expected.{field}"), **case.limits())


def compare_seen(case: Case, field: str, ours: Tensor, seen: Tensor) -> None:
    theirs = case.tensor(f"expected.{field}")
    assert torch.equal(seen, ~theirs.isnan())
    agree(ours, theirs, **case.limits())


COMPARISONS = {
    "w#_g#_limit#.mask_own_formula": compare_mask,
    "w#_g#_limit#.effective_distance_own_formula": effective_distance,
    "w#_g#_limit#.weights": compare_weights,
    "w#_g#_limit#.output": compare_output,
}


@pytest.mark.parametrize(("case", "field"), sized_fields("lm_infinite", NOT_COMPARED))
def test_lm_infinite_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
