"""Reference numbers of LongRoPE."""

from __future__ import annotations

import pytest
from reference_cases import Case, fields, run
from scaled_rope import compare

NOT_COMPARED: dict[str, str] = {}


def compare_cases(case: Case) -> None:
    """Beyond the trained length. Up to it a strategy changes nothing, where the library has the short factors."""
    beyond = [group for group in case.at("expected.cases") if (group["seq_len"] or 0) > group["L0"]]
    assert beyond
    for group in beyond:
        strategy = {"name": "longrope", "factors": group["long_factor"], "factor": group["factor"]}
        compare(case, group, strategy, train_length=group["L0"], length=group["seq_len"])


COMPARISONS = {"cases": compare_cases}


@pytest.mark.parametrize(("case", "field"), fields("rope_longrope", NOT_COMPARED))
def test_rope_longrope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
