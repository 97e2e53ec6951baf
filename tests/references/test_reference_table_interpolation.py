"""Reference numbers of a learned table that is read between its rows."""

from __future__ import annotations

import pytest
import torch
from driving import built, with_parameters
from reference_cases import Case, agree, run_sized, sized_fields

from pe_cli import strategies

CUBIC = "a strategy that reads a table by cubic splines is not built yet"
NOT_COMPARED = {
    "T#.linear_align_corners_False": "the first and last row stay where they are: `interpolate` aligns the corners",
    "T#.nearest": "a strategy that takes the nearest row is not built yet",
    "T#.bicubic_align_corners_True": CUBIC,
    "T#.bicubic_align_corners_False": CUBIC,
    "T#.bicubic_antialias": CUBIC,
}


def interpolated(case: Case, field: str) -> None:
    rows, width = case.size("L"), case.size("D")
    table = case.tensor("parameters.W")
    encoding = with_parameters(
        built("learned", d_model=width, n_heads=1, train_length=rows, max_position=rows), table=table
    )
    length = int(field.split(".")[0].removeprefix("T"))
    changed = strategies.apply("interpolate", encoding, rows, length)
    positions = changed.positions(torch.zeros(1, length, dtype=torch.long))
    ours = changed.embed(torch.zeros(1, length, width, dtype=torch.float64), positions)[0]
    # ids are float32: a fraction between two rows is off by as much as an id of size L is rounded
    rounding = torch.finfo(torch.float32).eps * rows * table.diff(dim=0).abs().max().item()
    agree(ours, case.tensor(f"expected.{field}"), abs=max(case.tolerance(), rounding))


COMPARISONS = {"T#.linear_align_corners_True": interpolated}


@pytest.mark.parametrize(("case", "field"), sized_fields("table_interpolation", NOT_COMPARED))
def test_table_interpolation_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
