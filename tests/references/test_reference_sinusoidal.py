"""Reference numbers of the sinusoidal table."""

from __future__ import annotations

import pytest
from driving import built, table
from reference_cases import Case, agree, fields, run

NOT_COMPARED = {
    "fairseq_concat": "frequencies with the exponent k / (D/2 − 1), which are not the paper's, are not built",
}


def compare(case: Case, field: str, tolerance: str, layout: str, far: bool = False, scale: float = 1.0) -> None:
    width = case.size("D")
    base = case.at("hyperparameters.base")
    block = {"name": "sinusoidal", "base": base, "layout": layout, "scale": scale}
    ids = case.at("hyperparameters.far_positions") if far else range(case.size("T"))
    ours = table(built(block, d_model=width, n_heads=1), list(ids))
    agree(ours, case.tensor(f"expected.{field}"), abs=case.tolerance(tolerance))


def interleaved(case: Case) -> None:
    compare(case, "interleaved", "abs", "interleaved")


def interleaved_far(case: Case) -> None:
    compare(case, "interleaved_far_f32", "far_f32_abs", "interleaved", far=True)


def concatenated(case: Case) -> None:
    compare(case, "concat_f64", "f64_abs", "concatenated")


def concatenated_far(case: Case) -> None:
    compare(case, "concat_far_f64", "f64_abs", "concatenated", far=True)


def scaled(case: Case) -> None:
    """One library multiplies the table by a scalar that starts at D ** -0.5."""
    compare(case, "x_transformers_scaled", "abs", "concatenated", scale=case.size("D") ** -0.5)


COMPARISONS = {
    "interleaved": interleaved,
    "interleaved_far_f32": interleaved_far,
    "concat_f64": concatenated,
    "concat_far_f64": concatenated_far,
    "x_transformers_scaled": scaled,
}


@pytest.mark.parametrize(("case", "field"), fields("sinusoidal", NOT_COMPARED))
def test_sinusoidal_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
