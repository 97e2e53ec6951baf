"""Reference numbers of xPos: queries and keys with their factors, and logits. The rotation pairs neighbours."""

from __future__ import annotations

import re

import pytest
from driving import built, layer_of, logits
from reference_cases import Case, agree, fields, run

NOT_COMPARED: dict[str, str] = {}


def compare(case: Case, field: str) -> None:
    """`T10_scale_base512`: the inputs of that length with that scale base."""
    found = re.fullmatch(r"(T\d+)_scale_base(\d+(?:\.\d+)?)", field)
    assert found, f"{case.path.name}: what '{field}' is, its name does not say"
    inputs, scale_base = found.groups()
    heads = case.size("H")
    block = {"name": "xpos", "scale_base": float(scale_base), "layout": "interleaved"}
    encoding = built(block, d_model=heads * case.size("d_head"), n_heads=heads)
    layer = layer_of(case.tensor(f"inputs.{inputs}.q"), case.tensor(f"inputs.{inputs}.k"))
    q, k = encoding.rotate(layer)
    ours = {"q": q, "k": k, "logits": logits(encoding, layer)}
    for what in case.at(f"expected.{field}"):
        agree(ours[what][0], case.tensor(f"expected.{field}.{what}"), abs=case.tolerance())


@pytest.mark.parametrize(("case", "field"), fields("xpos", NOT_COMPARED))
def test_xpos_reference(case: Case, field: str) -> None:
    run({field: lambda case: compare(case, field)}, case, field)
