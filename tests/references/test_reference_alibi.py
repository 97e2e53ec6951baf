"""Reference numbers of ALiBi."""

from __future__ import annotations

import pytest
from driving import built, sequential_bias
from reference_cases import Case, agree, fields, run

NOT_COMPARED: dict[str, str] = {}


def slopes(case: Case) -> None:
    for heads in case.at("expected.slopes"):
        encoding = built("alibi", d_model=8 * int(heads), n_heads=int(heads))
        theirs = case.tensor(f"expected.slopes.{heads}")
        agree(encoding.numbers(1)["slopes"], theirs, rel=case.tolerance("rel"))


def distance_bias(case: Case) -> None:
    heads, length = case.size("H"), case.size("T")
    ours = sequential_bias(built("alibi", d_model=8 * heads, n_heads=heads), length)
    agree(ours, case.tensor("expected.bias"), rel=case.tolerance("rel"))


def key_only_bias(case: Case) -> None:
    """A bias by key index differs from one by distance by a constant for each query."""
    heads, length = case.size("H"), case.size("T")
    ours = sequential_bias(built("alibi", d_model=8 * heads, n_heads=heads), length)
    theirs = case.tensor("expected.fairseq_key_only_bias_own_formula")
    shifted = theirs[:, None, :] - theirs[:, :, None]
    agree(ours, shifted.masked_fill(ours.isinf(), float("nan")), rel=case.tolerance("rel"))


COMPARISONS = {
    "slopes": slopes,
    "bias": distance_bias,
    "fairseq_key_only_bias_own_formula": key_only_bias,
}


@pytest.mark.parametrize(("case", "field"), fields("alibi", NOT_COMPARED))
def test_alibi_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
