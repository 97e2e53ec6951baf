"""Reference numbers of Sandwich, with several numbers of cosines."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from driving import built, sequential_bias
from reference_cases import Case, agree, cases, fields, run
from torch import Tensor

NOT_COMPARED: dict[str, str] = {}


def bias_of(case: Case, dimensions: int, length: int) -> Tensor:
    heads = case.size("H")
    block = {"name": "sandwich", "dimensions": dimensions}
    return sequential_bias(built(block, d_model=8 * heads, n_heads=heads), length)


def whole(field: str) -> Callable[[Case], None]:
    def compare(case: Case) -> None:
        dimensions = int(field.removeprefix("dim_"))
        assert dimensions in case.at("hyperparameters.dims")
        ours = bias_of(case, dimensions, case.size("T"))
        agree(ours, case.tensor(f"expected.{field}.bias"), abs=case.tolerance())

    return compare


def last_row(field: str) -> Callable[[Case], None]:
    """Of a longer text, with every n-th key; the name of the field has the sizes."""

    def compare(case: Case) -> None:
        dimensions, length, step = map(int, re.findall(r"\d+", field))
        ours = bias_of(case, dimensions, length)[:, -1, ::step]
        agree(ours, case.tensor(f"expected.{field}"), abs=case.tolerance())

    return compare


COMPARISONS = {
    field: (whole if field.removeprefix("dim_").isdigit() else last_row)(field)
    for case in cases("sandwich")
    for field in case.at("expected")
    if re.fullmatch(r"dim_\d+(_last_row_T\d+_every_\d+th_key)?", field)
}


@pytest.mark.parametrize(("case", "field"), fields("sandwich", NOT_COMPARED))
def test_sandwich_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
