"""Reference numbers of Transformer-XL's attention without memory. Their layout is (T, H, d)."""

from __future__ import annotations

import pytest
import torch
from driving import built, layer_of, logits, weights, with_parameters
from reference_cases import Case, agree, fields, run

from pe_cli.encodings.transformer_xl import TransformerXL
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case, clamp: int | None = None) -> TransformerXL:
    heads, width = case.size("H"), case.size("d_head")
    encoding = built({"name": "transformer_xl", "clamp": clamp}, d_model=case.size("d_model"), n_heads=heads)
    with_parameters(
        encoding,
        weight=case.tensor("parameters.W_R").unflatten(0, (heads, width)),
        u=case.tensor("parameters.u"),
        v=case.tensor("parameters.v_bias"),
    )
    assert isinstance(encoding, TransformerXL)
    return encoding


def layer(case: Case) -> LayerView:
    return layer_of(case.tensor("inputs.q").transpose(0, 1), case.tensor("inputs.k").transpose(0, 1))


def sinusoid(case: Case) -> None:
    theirs = case.tensor("expected.R")
    agree(encoding_of(case).sinusoid(torch.arange(len(theirs))), theirs, abs=case.tolerance())


def compare_logits(case: Case) -> None:
    agree(logits(encoding_of(case), layer(case))[0], case.tensor("expected.logits"), abs=case.tolerance())


def clamped(case: Case) -> None:
    ours = logits(encoding_of(case, case.size("clamp_len")), layer(case))[0]
    agree(ours, case.tensor("expected.logits_clamped"), abs=case.tolerance())


def compare_weights(case: Case) -> None:
    ours = weights(encoding_of(case), layer(case))[0]
    agree(ours, case.tensor("expected.weights"), abs=case.tolerance("weights_abs"))


COMPARISONS = {
    "R": sinusoid,
    "logits": compare_logits,
    "logits_clamped": clamped,
    "weights": compare_weights,
}


@pytest.mark.parametrize(("case", "field"), fields("transformer_xl", NOT_COMPARED))
def test_transformer_xl_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
