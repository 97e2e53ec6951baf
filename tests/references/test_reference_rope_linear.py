"""Reference numbers of position interpolation."""

from __future__ import annotations

import pytest
import torch
from driving import built
from reference_cases import Case, agree, as_tensor, fields, run

from pe_cli import strategies

NOT_COMPARED: dict[str, str] = {}
LENGTH = 16


def compare_cases(case: Case) -> None:
    """Frequencies divided by s turn by as much as ids divided by s: what the second character of a text shows."""
    for group in case.at("expected.cases"):
        rope = {"name": "rope", "base": group["base"]}
        encoding = built(rope, d_model=group["head_dim"], n_heads=1, train_length=LENGTH)
        length = round(LENGTH * group["factor"])
        changed = strategies.apply("interpolate(places=ratio)", encoding, LENGTH, length)
        ids = changed.positions(torch.zeros(1, length, dtype=torch.long)).ids[0].double()
        angles = ids[1] * changed.numbers(length)["inverse_frequencies"]
        agree(angles, as_tensor(group["inv_freq"]), rel=case.tolerance("rel"))
        assert group["attention_factor"] == 1


COMPARISONS = {"cases": compare_cases}


@pytest.mark.parametrize(("case", "field"), fields("rope_linear", NOT_COMPARED))
def test_rope_linear_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
