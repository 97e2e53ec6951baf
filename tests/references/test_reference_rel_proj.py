"""Reference numbers of the bias by projection. The rows of its matrix are the curves of one head, then the next."""

from __future__ import annotations

import pytest
from driving import bias, built, layer_of, with_parameters
from reference_cases import Case, agree, fields, run

NOT_COMPARED: dict[str, str] = {}


def compare_bias(case: Case) -> None:
    heads, width, basis = case.size("H"), case.size("D"), case.size("basis")
    block = {"name": "rel_proj", "basis": basis, "max_distance": case.size("max_dist")}
    encoding = with_parameters(
        built(block, d_model=width, n_heads=heads, n_layers=1),
        weight=case.tensor("parameters.W").unflatten(0, (heads, basis)),
        offset=case.tensor("parameters.b").unflatten(0, (heads, basis)),
        curves=case.tensor("parameters.bank"),
    )
    x = case.tensor("inputs.x")
    nothing = x.new_zeros(heads, len(x), width // heads)
    agree(bias(encoding, layer_of(nothing, nothing, x=x))[0], case.tensor("expected.bias"), abs=case.tolerance())


COMPARISONS = {"bias": compare_bias}


@pytest.mark.parametrize(("case", "field"), fields("rel_proj", NOT_COMPARED))
def test_rel_proj_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
