"""Reference numbers of RoPE, and of its partial form: all columns or the first ones of a head turned."""

from __future__ import annotations

from typing import Any

import pytest
from driving import built, layer_of, logits
from reference_cases import Case, agree, as_tensor, fields, run

from pe_cli.encodings.base import PositionEncoding

NOT_COMPARED: dict[str, str] = {}

LAYOUTS = {"half": "halves", "interleaved": "interleaved"}


def encoding_of(case: Case, fraction: float | None = None, **options: Any) -> PositionEncoding:
    heads = case.size("H")
    form = {"name": "rope"} if fraction is None else {"name": "rope_partial", "fraction": fraction}
    block = {**form, "base": case.at("hyperparameters.base"), **options}
    return built(block, d_model=heads * case.size("d_head"), n_heads=heads)


def rotations(case: Case) -> None:
    """Each case: rotated queries and keys, and logits, of all heads or of the first ones."""
    q, k = case.tensor("inputs.q"), case.tensor("inputs.k")
    for name, expected in case.at("expected.cases").items():
        ids = case.at("hyperparameters.positions").get(name, list(range(q.shape[1])))
        tolerance = case.tolerance("abs_positions_over_500" if max(ids) > 500 else "abs")
        fraction = expected.get("rotary_fraction")
        for field, numbers in expected.items():
            if field == "rotary_fraction":
                continue
            if field == "inv_freq":
                ours = encoding_of(case, fraction).numbers(1)["inverse_frequencies"]
                agree(ours, as_tensor(numbers), rel=case.tolerance("inv_freq_rel"))
                continue
            what, layout = field.rsplit("_", 1)
            theirs = as_tensor(numbers)
            encoding = encoding_of(case, fraction, layout=LAYOUTS[layout])
            layer = layer_of(q[: len(theirs)], k[: len(theirs)], ids=ids)
            turned_q, turned_k = encoding.rotate(layer)
            ours = {"q": turned_q, "k": turned_k, "logits": logits(encoding, layer)}[what][0]
            agree(ours, theirs, abs=tolerance)


def frequencies(case: Case) -> None:
    ours = encoding_of(case).numbers(1)["inverse_frequencies"]
    agree(ours, case.tensor("expected.inv_freq"), rel=case.tolerance("inv_freq_rel"))


def frequency_table(case: Case) -> None:
    for listed in case.at("expected.inv_freq_table").values():
        encoding = built({"name": "rope", "base": listed["base"]}, d_model=listed["head_dim"], n_heads=1)
        ours = encoding.numbers(1)["inverse_frequencies"]
        agree(ours, as_tensor(listed["inv_freq"]), rel=case.tolerance("inv_freq_rel"))


COMPARISONS = {
    "cases": rotations,
    "inv_freq": frequencies,
    "inv_freq_table": frequency_table,
}


@pytest.mark.parametrize(("case", "field"), fields("rope", NOT_COMPARED))
def test_rope_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
