"""Reference numbers of dynamic NTK-aware scaling."""

from __future__ import annotations

import pytest
from reference_cases import Case, fields, run
from scaled_rope import compare

NOT_COMPARED = {
    "stateful_calls_d8_L0_16_factor2_base1e4": "the library keeps the base of the longest text so far; ours is a "
    "function of the length alone"
}


def compare_cases(case: Case) -> None:
    for group in case.at("expected.cases"):
        strategy = {"name": "dynamic_ntk", "growth": group["factor"]}
        compare(case, group, strategy, train_length=group["L0"], length=group["seq_len"])


COMPARISONS = {"cases": compare_cases}


@pytest.mark.parametrize(("case", "field"), fields("rope_dynamic_ntk", NOT_COMPARED))
def test_rope_dynamic_ntk_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
