"""Reference numbers of YaRN: the ramp of its code, and that of its paper."""

from __future__ import annotations

from typing import Any

import pytest
from reference_cases import Case, fields, run
from scaled_rope import compare

NOT_COMPARED = {
    "attention_factor_options": "two options of other models, whose quotient can be stated as `attention_factor`"
}


def strategy_of(group: dict[str, Any], ramp: str) -> dict[str, Any]:
    return {"name": "yarn", "ramp": ramp, **{key: group[key] for key in ("factor", "beta_fast", "beta_slow")}}


def compare_cases(case: Case) -> None:
    for group in case.at("expected.cases"):
        ramp = "pairs" if group["truncate"] else "unrounded_pairs"
        compare(case, group, strategy_of(group, ramp), train_length=group["L0"])
        paper = "paper_ramp_inv_freq_own_formula"
        if paper in group:
            compare(case, group, strategy_of(group, "turns"), train_length=group["L0"], key=paper)


COMPARISONS = {"cases": compare_cases}


@pytest.mark.parametrize(("case", "field"), fields("rope_yarn", NOT_COMPARED))
def test_rope_yarn_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
