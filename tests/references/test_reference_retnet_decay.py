"""Reference numbers of RetNet's decay. Retention itself has no softmax: the bias enters it as a factor."""

from __future__ import annotations

import pytest
from driving import bias, block_of, built, layer_of, sequential_bias
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case) -> PositionEncoding:
    heads = case.size("H")
    return built("retnet_decay", d_model=heads * case.size("d_head"), n_heads=heads)


def retained(case: Case) -> Tensor:
    """q·k/√d times γ to the power of the distance, which is the exponential of the bias; 0 for future keys."""
    encoding, layer = encoding_of(case), layer_of(case.tensor("inputs.q"), case.tensor("inputs.k"))
    return (block_of(encoding, layer).scores * bias(encoding, layer).exp())[0]


def log_decay_bias(case: Case) -> None:
    theirs = case.tensor("expected.log_decay_bias_own_formula")
    agree(sequential_bias(encoding_of(case), case.size("T")), theirs, abs=case.tolerance())


def scores(case: Case) -> None:
    agree(retained(case), case.tensor("expected.scores"), abs=case.tolerance())


def output(case: Case) -> None:
    agree(retained(case) @ case.tensor("inputs.v"), case.tensor("expected.output"), abs=case.tolerance())


COMPARISONS = {"log_decay_bias_own_formula": log_decay_bias, "scores": scores, "output": output}


@pytest.mark.parametrize(("case", "field"), fields("retnet_decay", NOT_COMPARED))
def test_retnet_decay_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
