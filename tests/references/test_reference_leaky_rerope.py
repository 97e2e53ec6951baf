"""Reference numbers of Leaky ReRoPE."""

from __future__ import annotations

import pytest
from distances_seen import by_head, distances, head_sizes
from driving import built, layer_of, logits, output
from reference_cases import Case, agree, fields, run

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding

NOT_COMPARED: dict[str, str] = {}


def leaky(case: Case, encoding: PositionEncoding, log_n: bool = True) -> PositionEncoding:
    strategy = {
        "name": "leaky_rerope",
        "window": case.size("window"),
        "stretch": case.size("scaling_factor"),
        "log_n": log_n,
    }
    return strategies.apply(strategy, encoding, case.size("training_length"), case.size("T"))


def rope(case: Case) -> PositionEncoding:
    return leaky(case, built("rope", train_length=case.size("training_length"), **head_sizes(case)))


def effective_distance(case: Case) -> None:
    ours = distances(lambda encoding: leaky(case, encoding, log_n=False), case.size("T"))
    agree(ours, case.tensor("expected.effective_distance_own_formula"), abs=case.tolerance())


def compare_logits(case: Case) -> None:
    ours = logits(rope(case), layer_of(by_head(case, "q"), by_head(case, "k")))[0]
    agree(ours, case.tensor("expected.logits"), abs=case.tolerance())


def compare_output(case: Case) -> None:
    layer = layer_of(by_head(case, "q"), by_head(case, "k"))
    ours = output(rope(case), layer, by_head(case, "v")[None])[0].movedim(0, 1)
    agree(ours, case.tensor("expected.output"), abs=case.tolerance())


COMPARISONS = {
    "effective_distance_own_formula": effective_distance,
    "logits": compare_logits,
    "output": compare_output,
}


@pytest.mark.parametrize(("case", "field"), fields("leaky_rerope", NOT_COMPARED))
def test_leaky_rerope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
