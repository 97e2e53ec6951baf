"""Reference numbers of stick-breaking attention."""

from __future__ import annotations

import pytest
from driving import built, layer_of, output, weights
from reference_cases import Case, agree, fields, run

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED = {
    "attend_current": "attention to the query's own character: a variant of the published code, not built",
}


def encoding_of(case: Case, remainder: bool) -> PositionEncoding:
    heads = case.size("H")
    block = {"name": "stick_breaking", "remainder": remainder}
    return built(block, d_model=heads * case.size("d_head"), n_heads=heads)


def layer(case: Case) -> LayerView:
    return layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))


def strict_past(case: Case) -> None:
    plain, whole = encoding_of(case, remainder=False), encoding_of(case, remainder=True)
    v = case.tensor("inputs.v")[None]
    alpha = weights(plain, layer(case))[0]
    ours = {
        "weights": alpha,
        "remainder": 1 - alpha.sum(dim=-1),
        "output": output(plain, layer(case), v)[0],
        "output_plus_remainder_times_v": output(whole, layer(case), v)[0],
    }
    assert ours.keys() == case.at("expected.strict_past").keys()
    for field, numbers in ours.items():
        agree(numbers, case.tensor(f"expected.strict_past.{field}"), abs=case.tolerance())


COMPARISONS = {"strict_past": strict_past}


@pytest.mark.parametrize(("case", "field"), fields("stick_breaking", NOT_COMPARED))
def test_stick_breaking_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
