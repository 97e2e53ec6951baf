"""Reference numbers of a learned table that is resized."""

from __future__ import annotations

import pytest
import torch
from driving import built, with_parameters
from reference_cases import Case, agree, run_sized, sized_fields

from pe_cli import strategies

NOT_COMPARED = {
    "T#.bicubic_antialias": "smoothing is for smaller pictures; for larger tables it only has another kernel (a = -0.5)"
}
STRATEGIES = {
    "linear_align_corners_True": "interpolate",
    "linear_align_corners_False": "interpolate(places=centres)",
    "nearest": "nearest",
    "bicubic_align_corners_True": "cubic",
    "bicubic_align_corners_False": "cubic(places=centres)",
}


def resized(case: Case, field: str) -> None:
    rows, width = case.size("L"), case.size("D")
    table = case.tensor("parameters.W")
    encoding = with_parameters(
        built("learned", d_model=width, n_heads=1, train_length=rows, max_position=rows), table=table
    )
    size, _, mode = field.partition(".")
    length = int(size.removeprefix("T"))
    changed = strategies.apply(STRATEGIES[mode], encoding, rows, length)
    positions = changed.positions(torch.zeros(1, length, dtype=torch.long))
    ours = changed.embed(torch.zeros(1, length, width, dtype=torch.float64), positions)[0]
    # ids are float32: a fraction between two rows is off by as much as an id of size L is rounded
    rounding = torch.finfo(torch.float32).eps * rows * table.diff(dim=0).abs().max().item()
    renumbers = STRATEGIES[mode].startswith("interpolate")
    agree(ours, case.tensor(f"expected.{field}"), abs=max(case.tolerance(), rounding if renumbers else 0))


COMPARISONS = {f"T#.{mode}": resized for mode in STRATEGIES}


@pytest.mark.parametrize(("case", "field"), sized_fields("table_interpolation", NOT_COMPARED))
def test_table_interpolation_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
