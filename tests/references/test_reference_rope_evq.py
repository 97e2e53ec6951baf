"""Reference numbers of the EVQ-cosh schedule, on both of its grids."""

from __future__ import annotations

import pytest
from driving import built
from reference_cases import Case, agree, as_tensor, fields, run

NOT_COMPARED: dict[str, str] = {}


def schedules(case: Case) -> None:
    for listed in case.at("expected.cases"):
        grid = "midpoint" if listed["midpoint"] else "left"
        block = {"name": "rope_evq", "base": listed["base"], "tau": listed["tau"], "grid": grid}
        encoding = built(block, d_model=listed["head_dim"], n_heads=1)
        agree(encoding.numbers(1)["inverse_frequencies"], as_tensor(listed["inv_freq"]), rel=case.tolerance("rel"))


COMPARISONS = {"cases": schedules}


@pytest.mark.parametrize(("case", "field"), fields("rope_evq", NOT_COMPARED))
def test_rope_evq_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
