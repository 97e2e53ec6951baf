"""Reference numbers of PoPE: without phases, with learned ones, and with phases beyond their limits."""

from __future__ import annotations

import pytest
import torch
from driving import built, layer_of, logits, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

NOT_COMPARED: dict[str, str] = {}


def compare(case: Case, field: str, phases: Tensor) -> None:
    heads = case.size("H")
    block = {"name": "pope", "base": case.at("hyperparameters.base")}
    encoding = built(block, d_model=heads * case.size("d_head"), n_heads=heads)
    encoding = with_parameters(encoding, phases=phases)
    layer = layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))
    q, k = encoding.rotate(layer)
    ours = {"q_embedded": q, "k_embedded": k, "logits": logits(encoding, layer)}
    for what in case.at(f"expected.{field}"):
        agree(ours[what][0], case.tensor(f"expected.{field}.{what}"), abs=case.tolerance())


COMPARISONS = {
    "zero_delta": lambda case: compare(case, "zero_delta", torch.zeros(1)),
    "learned_delta": lambda case: compare(case, "learned_delta", case.tensor("parameters.delta")),
    "out_of_range": lambda case: compare(case, "out_of_range", case.tensor("parameters.delta_out_of_range")),
}


@pytest.mark.parametrize(("case", "field"), fields("pope", NOT_COMPARED))
def test_pope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
