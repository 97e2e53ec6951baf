"""Reference numbers of NTK-aware scaling."""

from __future__ import annotations

import pytest
from reference_cases import Case, fields, run
from scaled_rope import compare

NOT_COMPARED: dict[str, str] = {}


def compare_cases(case: Case) -> None:
    """With the factor stated, and as the length of the text gives it."""
    for group in case.at("expected.cases"):
        compare(case, group, {"name": "ntk", "factor": group["factor"]}, train_length=16, length=32)
        compare(case, group, {"name": "ntk"}, train_length=16)


COMPARISONS = {"cases": compare_cases}


@pytest.mark.parametrize(("case", "field"), fields("rope_ntk_fixed", NOT_COMPARED))
def test_rope_ntk_fixed_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
