"""Reference numbers of p-RoPE and of partial RoPE: two ways to turn a share of a head."""

from __future__ import annotations

from typing import Any

import pytest
from driving import built
from reference_cases import Case, agree, as_tensor, fields, run
from torch import Tensor

NOT_COMPARED: dict[str, str] = {}


def frequencies(listed: dict[str, Any], **block: Any) -> Tensor:
    """Position interpolation by a factor divides the ids, and so the frequencies."""
    encoding = built({"base": listed["base"], **block}, d_model=listed["head_dim"], n_heads=1)
    return encoding.numbers(1)["inverse_frequencies"] / listed["factor"]


def compare(case: Case) -> None:
    for listed in case.at("expected.cases"):
        kept = frequencies(listed, name="p_rope", p=listed["p"])
        agree(kept, as_tensor(listed["inv_freq_proportional"]), rel=case.tolerance("rel"))
        partial = frequencies(listed, name="rope_partial", fraction=listed["p"])
        agree(partial, as_tensor(listed["inv_freq_partial"]), rel=case.tolerance("rel"))
        assert 2 * len(partial) == listed["rotary_dim_partial"]


COMPARISONS = {"cases": compare}


@pytest.mark.parametrize(("case", "field"), fields("rope_proportional", NOT_COMPARED))
def test_rope_proportional_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
