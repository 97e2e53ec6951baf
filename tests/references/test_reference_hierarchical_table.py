"""Reference numbers of the hierarchical extension of a learned table."""

from __future__ import annotations

import pytest
import torch
from driving import built, with_parameters
from reference_cases import Case, agree, as_tensor, run_sized, sized_fields

from pe_cli import strategies

NOT_COMPARED: dict[str, str] = {}


def extended(case: Case, field: str) -> None:
    rows, width, length = case.size("L"), case.size("D"), case.size("T")
    table = case.tensor("parameters.W")
    encoding = built("learned", d_model=width, n_heads=1, train_length=rows, max_position=rows)
    strategy = {"name": "hierarchical", "alpha": field.removeprefix("alpha_")}
    changed = strategies.apply(strategy, with_parameters(encoding, table=table), rows, length)
    positions = changed.positions(torch.zeros(1, length, dtype=torch.long))
    ours = changed.embed(torch.zeros(1, length, width, dtype=torch.float64), positions)[0]
    agree(ours, as_tensor(case.at("expected")[field]), abs=case.tolerance())


COMPARISONS = {"alpha_#.#": extended}


@pytest.mark.parametrize(("case", "field"), sized_fields("hierarchical_table", NOT_COMPARED))
def test_hierarchical_table_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
