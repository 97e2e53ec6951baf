"""Reference numbers of contextual positions. Their table is (d, n)."""

from __future__ import annotations

import math

import pytest
from driving import built, layer_of, logits, output, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def layer(case: Case) -> LayerView:
    return layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))


def encoding_of(case: Case, term: str, rows: Tensor) -> PositionEncoding:
    heads = case.size("H")
    block = {"name": "cope", "positions": case.size("npos"), "term": term}
    encoding = built(block, d_model=heads * case.size("d_head"), n_heads=heads)
    return with_parameters(encoding, rows=rows)


def compare(case: Case, field: str, term: str) -> None:
    encoding = encoding_of(case, term, case.tensor("parameters.E").T)
    ours = {
        "logits": logits(encoding, layer(case))[0],
        "output": output(encoding, layer(case), case.tensor("inputs.v")[None])[0],
    }
    for name in case.at(f"expected.{field}"):
        agree(ours[name], case.tensor(f"expected.{field}.{name}"), abs=case.tolerance())


def positions(case: Case) -> None:
    """Seen through rows that hold their own number, and queries whose product with a row of ones is 1."""
    q = case.tensor("inputs.q")
    rows = q.new_tensor(range(case.size("npos")))[:, None].expand(-1, case.size("d_head"))
    encoding = encoding_of(case, "scaled", rows)
    shown = logits(encoding, layer(case)) - logits(encoding_of(case, "scaled", 0 * rows), layer(case))
    ours = shown[0] * math.sqrt(case.size("d_head")) / q.sum(dim=-1, keepdim=True)
    agree(ours, case.tensor("expected.positions_own_formula"), abs=case.tolerance())


COMPARISONS = {
    "official_default": lambda case: compare(case, "official_default", "scaled"),
    "nodiv": lambda case: compare(case, "nodiv", "plain"),
    "x_transformers": lambda case: compare(case, "x_transformers", "plain"),
    "positions_own_formula": positions,
}


@pytest.mark.parametrize(("case", "field"), fields("cope", NOT_COMPARED))
def test_cope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
