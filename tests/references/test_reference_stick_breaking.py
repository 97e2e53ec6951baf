"""Reference numbers of stick-breaking attention."""

from __future__ import annotations

import pytest
from driving import built, layer_of, output, weights
from reference_cases import Case, agree, fields, run

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case, nearest: str, remainder: bool) -> PositionEncoding:
    heads = case.size("H")
    block = {"name": "stick_breaking", "nearest": nearest, "remainder": remainder}
    return built(block, d_model=heads * case.size("d_head"), n_heads=heads)


def layer(case: Case) -> LayerView:
    return layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))


def compare(case: Case, field: str, nearest: str) -> None:
    plain, whole = (encoding_of(case, nearest, remainder) for remainder in (False, True))
    v = case.tensor("inputs.v")[None]
    alpha = weights(plain, layer(case))[0]
    ours = {
        "weights": alpha,
        "remainder": 1 - alpha.sum(dim=-1),
        "output": output(plain, layer(case), v)[0],
        "output_plus_remainder_times_v": output(whole, layer(case), v)[0],
    }
    assert ours.keys() == case.at(f"expected.{field}").keys()
    for name, numbers in ours.items():
        agree(numbers, case.tensor(f"expected.{field}.{name}"), abs=case.tolerance())


COMPARISONS = {
    "strict_past": lambda case: compare(case, "strict_past", "previous"),
    "attend_current": lambda case: compare(case, "attend_current", "own"),
}


@pytest.mark.parametrize(("case", "field"), fields("stick_breaking", NOT_COMPARED))
def test_stick_breaking_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
