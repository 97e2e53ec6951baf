"""Reference numbers of Shaw's relative vectors. One published table runs from far to near."""

from __future__ import annotations

import math

import pytest
from driving import bias, built, layer_of, logits, output, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def layer(case: Case) -> LayerView:
    return layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))


def keys_only(case: Case, rows: Tensor) -> PositionEncoding:
    return with_parameters(sized(case, {"clip": len(rows) - 1, "values": False}), key_rows=rows)


def keys_and_values(case: Case, key_rows: Tensor, value_rows: Tensor) -> PositionEncoding:
    encoding = sized(case, {"clip": len(key_rows) - 1, "values": True})
    return with_parameters(encoding, key_rows=key_rows, value_rows=value_rows)


def sized(case: Case, options: dict[str, object]) -> PositionEncoding:
    heads = case.size("H")
    return built({"name": "shaw", **options}, d_model=heads * case.size("d_head"), n_heads=heads)


def by_distance(case: Case, name: str) -> Tensor:
    return case.tensor(f"parameters.{name}").flip(0)


def position_term(case: Case) -> None:
    """Published before the division by √d."""
    encoding = keys_only(case, by_distance(case, "emb_clipped_published_order"))
    ours = math.sqrt(case.size("d_head")) * bias(encoding, layer(case))[0]
    agree(ours, case.tensor("expected.position_term"), abs=case.tolerance())


def position_term_full(case: Case) -> None:
    encoding = keys_only(case, by_distance(case, "emb_full_published_order"))
    ours = math.sqrt(case.size("d_head")) * bias(encoding, layer(case))[0]
    agree(ours, case.tensor("expected.position_term_full_table"), abs=case.tolerance())


def compare_logits(case: Case) -> None:
    encoding = keys_only(case, by_distance(case, "emb_clipped_published_order"))
    agree(logits(encoding, layer(case))[0], case.tensor("expected.logits"), abs=case.tolerance())


def logits_with_values(case: Case) -> None:
    rows = case.tensor("parameters.A_K_by_distance"), case.tensor("parameters.A_V_by_distance")
    ours = logits(keys_and_values(case, *rows), layer(case))[0]
    agree(ours, case.tensor("expected.logits_kv_own_formula"), abs=case.tolerance())


def output_with_values(case: Case) -> None:
    rows = case.tensor("parameters.A_K_by_distance"), case.tensor("parameters.A_V_by_distance")
    ours = output(keys_and_values(case, *rows), layer(case), case.tensor("inputs.v")[None])[0]
    agree(ours, case.tensor("expected.output_kv_own_formula"), abs=case.tolerance())


def output_shared_table(case: Case) -> None:
    """One library has one table for keys and values."""
    rows = case.tensor("parameters.A_K_by_distance")
    ours = output(keys_and_values(case, rows, rows), layer(case), case.tensor("inputs.v")[None])[0]
    agree(ours, case.tensor("expected.output_shared_kv_table_bert4keras"), abs=case.tolerance())


COMPARISONS = {
    "position_term": position_term,
    "position_term_full_table": position_term_full,
    "logits": compare_logits,
    "logits_kv_own_formula": logits_with_values,
    "output_kv_own_formula": output_with_values,
    "output_shared_kv_table_bert4keras": output_shared_table,
}


@pytest.mark.parametrize(("case", "field"), fields("shaw", NOT_COMPARED))
def test_shaw_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
