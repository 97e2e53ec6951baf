"""Reference numbers of KERPLE's logarithmic kernel, within the bounds of its parameters and outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from driving import built, sequential_bias, with_parameters
from reference_cases import Case, agree, fields, run

NOT_COMPARED: dict[str, str] = {}


def bias_of(setting: str) -> Callable[[Case], None]:
    def compare(case: Case) -> None:
        heads, length = case.size("H"), case.size("T")
        encoding = with_parameters(
            built("kerple_log", d_model=8 * heads, n_heads=heads),
            r1=case.tensor(f"parameters.{setting}.p"),
            r2=case.tensor(f"parameters.{setting}.a"),
        )
        agree(sequential_bias(encoding, length), case.tensor(f"expected.{setting}.bias"), abs=case.tolerance())

    return compare


COMPARISONS = {setting: bias_of(setting) for setting in ("regular", "out_of_range")}


@pytest.mark.parametrize(("case", "field"), fields("kerple_log", NOT_COMPARED))
def test_kerple_log_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
