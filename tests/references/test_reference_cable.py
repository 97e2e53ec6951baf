"""Reference numbers of context-aware biases. Their layout is (T, H, d); one form has no division by √d."""

from __future__ import annotations

import math

import pytest
from driving import bias, built, layer_of, logits, with_parameters
from reference_cases import Case, agree, fields, run

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case) -> PositionEncoding:
    heads = case.size("H")
    encoding = built("cable", d_model=heads * case.size("d_head"), n_heads=heads, n_layers=1)
    return with_parameters(encoding, weight=case.tensor("parameters.W"), increment_bias=case.tensor("parameters.b"))


def layer(case: Case, factor: float = 1.0) -> LayerView:
    q, k = (case.tensor(f"inputs.{name}").transpose(0, 1) for name in "qk")
    return layer_of(factor * q, k, x=case.tensor("inputs.x"))


def compare_bias(case: Case) -> None:
    agree(bias(encoding_of(case), layer(case))[0], case.tensor("expected.bias_own_formula"), abs=case.tolerance())


def published(case: Case) -> None:
    """The published logits are not divided by √d, so queries are multiplied by it."""
    ours = logits(encoding_of(case), layer(case, factor=math.sqrt(case.size("d_head"))))[0]
    agree(ours, case.tensor("expected.logits_published"), abs=case.tolerance())


def scaled(case: Case) -> None:
    ours = logits(encoding_of(case), layer(case))[0]
    agree(ours, case.tensor("expected.logits_scaled_own_formula"), abs=case.tolerance())


COMPARISONS = {
    "bias_own_formula": compare_bias,
    "logits_published": published,
    "logits_scaled_own_formula": scaled,
}


@pytest.mark.parametrize(("case", "field"), fields("cable", NOT_COMPARED))
def test_cable_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
