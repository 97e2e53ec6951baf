"""Reference numbers of forgetting attention, and of its gates by row. Their layout is (T, H, d)."""

from __future__ import annotations

import pytest
import torch
from driving import bias, built, layer_of, logits, output, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def driven_by_gates(case: Case) -> tuple[PositionEncoding, LayerView]:
    """The file gives log gates g. An input with logit(eᵍ) in its first columns and a weight that reads these
    columns make the same gates."""
    q, k, g = (case.tensor(f"inputs.{name}") for name in "qkg")
    length, heads, width = q.shape
    x = torch.zeros(length, heads * width, dtype=torch.float64)
    x[:, :heads] = -torch.log(torch.expm1(-g))
    encoding = built("fox", d_model=heads * width, n_heads=heads, n_layers=1)
    reading = torch.eye(heads, heads * width, dtype=torch.float64)
    with_parameters(encoding, weight=reading, gate_bias=torch.zeros(heads, dtype=torch.float64))
    return encoding, layer_of(q.transpose(0, 1), k.transpose(0, 1), x=x)


def values_of(case: Case) -> Tensor:
    return case.tensor("inputs.v").transpose(0, 1)[None]


def compare_logits(case: Case) -> None:
    agree(logits(*driven_by_gates(case))[0], case.tensor("expected.logits"), abs=case.tolerance())


def compare_output(case: Case) -> None:
    ours = output(*driven_by_gates(case), values_of(case))[0].transpose(0, 1)
    agree(ours, case.tensor("expected.output"), abs=case.tolerance())


def windowed_output(case: Case) -> None:
    """The same logits for the nearest `window_size` keys, the query's own included."""
    encoding, layer = driven_by_gates(case)
    index = torch.arange(case.size("T"))
    far = index[:, None] - index >= case.size("window_size")
    weights = logits(encoding, layer).masked_fill(far, -torch.inf).softmax(dim=-1)
    ours = (weights @ values_of(case))[0].transpose(0, 1)
    agree(ours, case.tensor("expected.output_window"), abs=case.tolerance())


def bias_from_input(case: Case) -> None:
    heads, width = case.size("H"), case.size("D")
    x = case.tensor("inputs.x")
    encoding = built("fox", d_model=width, n_heads=heads, n_layers=1)
    with_parameters(encoding, weight=case.tensor("parameters.W_forget"), gate_bias=case.tensor("parameters.b_forget"))
    nothing = x.new_zeros(heads, len(x), width // heads)
    ours = bias(encoding, layer_of(nothing, nothing, x=x))[0]
    agree(ours, case.tensor("expected.x_bias"), abs=case.tolerance())


def bias_by_row(case: Case) -> None:
    """The published matrix makes the queries of all heads, then the keys."""
    heads, width = case.size("H"), case.size("D")
    query, key = case.tensor("parameters.W_per_row").chunk(2)
    x = case.tensor("inputs.x")
    block = {"name": "fox_row", "width": case.size("per_row_dim_head")}
    encoding = with_parameters(built(block, d_model=width, n_heads=heads, n_layers=1), query=query, key=key)
    nothing = x.new_zeros(heads, len(x), width // heads)
    ours = bias(encoding, layer_of(nothing, nothing, x=x))[0]
    agree(ours, case.tensor("expected.per_row_bias"), abs=case.tolerance())


COMPARISONS = {
    "logits": compare_logits,
    "output": compare_output,
    "output_window": windowed_output,
    "x_bias": bias_from_input,
    "per_row_bias": bias_by_row,
}


@pytest.mark.parametrize(("case", "field"), fields("fox", NOT_COMPARED))
def test_fox_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
