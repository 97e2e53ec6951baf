"""Reference numbers of the scaling of Llama 3.1."""

from __future__ import annotations

import pytest
from reference_cases import Case, fields, run
from scaled_rope import compare

NOT_COMPARED: dict[str, str] = {}


def compare_cases(case: Case) -> None:
    for group in case.at("expected.cases"):
        options = {key: group[key] for key in ("factor", "low_freq_factor", "high_freq_factor")}
        compare(case, group, {"name": "llama3", **options}, train_length=group["L0"])


COMPARISONS = {"cases": compare_cases}


@pytest.mark.parametrize(("case", "field"), fields("rope_llama3", NOT_COMPARED))
def test_rope_llama3_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
