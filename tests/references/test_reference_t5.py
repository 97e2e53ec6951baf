"""Reference numbers of T5's bias."""

from __future__ import annotations

import pytest
import torch
from driving import built, sequential_bias, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case) -> PositionEncoding:
    heads = case.size("H")
    block = {"name": "t5", "buckets": case.size("num_buckets"), "max_distance": case.size("max_distance")}
    encoding = built(block, d_model=8 * heads, n_heads=heads)
    return with_parameters(encoding, table=case.tensor("parameters.embedding"))


def whole_bias(case: Case) -> None:
    ours = sequential_bias(encoding_of(case), case.size("T"))
    agree(ours, case.tensor("expected.bias"), abs=case.tolerance())


def last_row(case: Case) -> None:
    theirs = case.tensor("expected.bias_last_row_of_longer_T")
    ours = sequential_bias(encoding_of(case), theirs.shape[1])[:, -1]
    agree(ours, theirs, abs=case.tolerance())


def bucket_tables(case: Case) -> None:
    for listed in case.at("expected.bucket_tables"):
        theirs = expanded(listed["bucket_change_points_distance_bucket"], length=5001)
        block = {"name": "t5", "buckets": listed["num_buckets"], "max_distance": listed["max_distance"]}
        ours = built(block).numbers(len(theirs))["buckets"]
        differing = (ours != theirs).nonzero().flatten().tolist()
        assert set(differing) <= set(listed["float_sensitive_distances"]), block


def expanded(change_points: list[list[int]], length: int) -> Tensor:
    buckets = torch.empty(length, dtype=torch.long)
    for distance, bucket in change_points:
        buckets[distance:] = bucket
    return buckets


COMPARISONS = {
    "bias": whole_bias,
    "bias_last_row_of_longer_T": last_row,
    "bucket_tables": bucket_tables,
}


@pytest.mark.parametrize(("case", "field"), fields("t5", NOT_COMPARED))
def test_t5_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
