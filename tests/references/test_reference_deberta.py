"""Reference numbers of disentangled attention. Their layout is (T, H, d); the tables P W are given projected."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import built, layer_of, logits, output, with_parameters
from reference_cases import Case, agree, as_tensor, fields, run
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def heads_of(case: Case, rows: int) -> int:
    """As many heads as let P be the identity: those beyond the file's get zeros and are not compared."""
    return max(case.size("H"), math.ceil(rows / case.size("d_head")))


def encoding_of(case: Case, kind: str, p2c: str) -> PositionEncoding:
    size = int(case.at(f"hyperparameters.{kind}.S"))
    options: dict[str, Any] = {"name": "deberta", "clip": size, "p2c": p2c}
    if kind == "log_buckets":
        options |= {"buckets": "log", "max_distance": case.at(f"hyperparameters.{kind}.max_relative_positions")}
    heads = heads_of(case, 2 * size)
    width = heads * case.size("d_head")
    encoding = built(options, d_model=width, n_heads=heads, n_layers=1)
    first = 0 if p2c == "mirrored" else size  # without the mirrored rows, those of δ ≥ k are left
    parameters = {"table": torch.eye(2 * size, width, dtype=torch.float64)[first:]}
    for name, theirs in (("key_weight", "P_key"), ("query_weight", "P_query")):
        projected = case.tensor(f"parameters.{kind}.{theirs}").transpose(0, 1)  # (H, 2k, d)
        missing = (0, 0, 0, width - 2 * size, 0, heads - len(projected))
        parameters[name] = F.pad(projected, missing)
    if p2c == "off":
        del parameters["query_weight"]
    return with_parameters(encoding, **parameters)


def padded(case: Case, name: str, heads: int) -> Tensor:
    given = case.tensor(f"inputs.{name}").transpose(0, 1)
    return F.pad(given, (0, 0, 0, 0, 0, heads - len(given)))


def layer(case: Case, heads: int) -> LayerView:
    return layer_of(padded(case, "q", heads), padded(case, "k", heads))


def attention(field: str, kind: str, p2c: str) -> Any:
    """The logits of a form, and the output where the file has it."""

    def compare(case: Case) -> None:
        encoding = encoding_of(case, kind, p2c)
        heads = encoding.spec.n_heads
        expected = case.at(f"expected.{field}")
        assert set(expected) <= {"logits", "output"}
        ours = logits(encoding, layer(case, heads))[0, : case.size("H")]
        agree(ours, as_tensor(expected["logits"]), abs=case.tolerance())
        if "output" in expected:
            mixed = output(encoding, layer(case, heads), padded(case, "v", heads)[None])[0, : case.size("H")]
            agree(mixed.transpose(0, 1), as_tensor(expected["output"]), abs=case.tolerance())

    return compare


def bucket_tables(case: Case) -> None:
    """One version lets buckets grow beyond the table and clips them when it takes rows."""
    for listed in case.at("expected.bucket_tables_distance_0_to_599").values():
        buckets = listed["bucket_size"]
        theirs = torch.empty(600, dtype=torch.long)
        for distance, bucket in listed["change_points_distance_bucket"]:
            theirs[distance:] = bucket
        options = {"name": "deberta", "clip": buckets, "buckets": "log", "max_distance": listed["max_position"]}
        rows = built(options).numbers(600)
        assert torch.equal(rows["query_rows"], (buckets + theirs).clamp(max=2 * buckets - 1))
        assert torch.equal(rows["key_rows"], buckets - theirs.clamp(max=buckets - 1))


COMPARISONS = {
    "clip_c2p_p2c_paper_delta_ji_own_formula": attention("clip_c2p_p2c_paper_delta_ji_own_formula", "clip", "mirrored"),
    "clip_c2p_p2c": attention("clip_c2p_p2c", "clip", "same_row"),
    "clip_c2p": attention("clip_c2p", "clip", "off"),
    "log_buckets_c2p_p2c": attention("log_buckets_c2p_p2c", "log_buckets", "same_row"),
    "log_buckets_c2p": attention("log_buckets_c2p", "log_buckets", "off"),
    "bucket_tables_distance_0_to_599": bucket_tables,
}


@pytest.mark.parametrize(("case", "field"), fields("deberta", NOT_COMPARED))
def test_deberta_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
