"""Reference numbers of FoPE, with its coefficients given. Pairs that see no ids have sine and cosine 1."""

from __future__ import annotations

import pytest
import torch
from driving import built, layer_of, logits
from reference_cases import Case, agree, fields, run

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def fresh(case: Case, **options: float) -> PositionEncoding:
    heads = case.size("H")
    return built(
        {"name": "fope", "base": case.at("hyperparameters.base"), "others": "both_one", **options},
        d_model=heads * case.size("d_head"),
        n_heads=heads,
        train_length=case.size("L_train"),
    )


def given(case: Case) -> PositionEncoding:
    encoding = fresh(case)
    with torch.no_grad():
        encoding.get_buffer("cosines").copy_(case.tensor("parameters.C_cos"))
        encoding.get_buffer("sines").copy_(case.tensor("parameters.C_sin"))
    return encoding


def layer(case: Case) -> LayerView:
    return layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))


def queries(case: Case) -> None:
    agree(given(case).rotate(layer(case))[0][0], case.tensor("expected.q"), abs=case.tolerance())


def keys(case: Case) -> None:
    agree(given(case).rotate(layer(case))[1][0], case.tensor("expected.k"), abs=case.tolerance())


def compare_logits(case: Case) -> None:
    agree(logits(given(case), layer(case))[0], case.tensor("expected.logits"), abs=case.tolerance())


def kept(case: Case) -> None:
    ours = fresh(case).numbers(1)["inverse_frequencies"]
    agree(ours, case.tensor("expected.kept_inv_freq"), abs=case.tolerance())


def identity_part(case: Case) -> None:
    encoding = fresh(case, gain=0)
    for name in ("cosines", "sines"):
        for head in encoding.get_buffer(name):
            agree(head, case.tensor("expected.identity_part_of_init"))


COMPARISONS = {
    "q": queries,
    "k": keys,
    "logits": compare_logits,
    "kept_inv_freq": kept,
    "identity_part_of_init": identity_part,
}


@pytest.mark.parametrize(("case", "field"), fields("fope", NOT_COMPARED))
def test_fope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
