"""Reference numbers of Self-Extend: the code of the paper's time, and the current one."""

from __future__ import annotations

import pytest
from distances_seen import by_head, distances, head_sizes
from driving import built, layer_of, logits, output
from reference_cases import Case, agree, run_sized, sized_fields

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding

OPTION = "an option of that group"
NOT_COMPARED = {
    "G#_W#.group_size": OPTION,
    "G#_W#.window": OPTION,
    "current_version.group_size": OPTION,
    "current_version.window": OPTION,
}


def extended(case: Case, field: str, encoding: PositionEncoding, offset: str) -> PositionEncoding:
    group = case.at("expected." + field.split(".")[0])
    strategy = {"name": "self_extend", "window": group["window"], "group": group["group_size"], "offset": offset}
    return strategies.apply(strategy, encoding, encoding.spec.train_length, case.size("T"))


def offset_of(field: str) -> str:
    return "exact" if field.startswith("current") or "unfloored" in field else "floored"


def rope(case: Case, field: str) -> PositionEncoding:
    return extended(case, field, built("rope", train_length=8, **head_sizes(case)), offset_of(field))


def effective_distance(case: Case, field: str) -> None:
    ours = distances(lambda encoding: extended(case, field, encoding, offset_of(field)), case.size("T"))
    agree(ours, case.tensor(f"expected.{field}"), abs=case.tolerance())


def compare_logits(case: Case, field: str) -> None:
    ours = logits(rope(case, field), layer_of(by_head(case, "q"), by_head(case, "k")))[0]
    agree(ours, case.tensor(f"expected.{field}"), abs=case.tolerance())


def compare_output(case: Case, field: str) -> None:
    layer = layer_of(by_head(case, "q"), by_head(case, "k"))
    ours = output(rope(case, field), layer, by_head(case, "v")[None])[0].movedim(0, 1)
    agree(ours, case.tensor(f"expected.{field}"), abs=case.tolerance())


COMPARISONS = {
    "G#_W#.logits": compare_logits,
    "G#_W#.output": compare_output,
    "G#_W#.effective_distance_own_formula": effective_distance,
    "G#_W#.effective_distance_unfloored_own_formula": effective_distance,
    "current_version.logits": compare_logits,
    "current_version.effective_distance_own_formula": effective_distance,
}


@pytest.mark.parametrize(("case", "field"), sized_fields("self_extend", NOT_COMPARED))
def test_self_extend_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
