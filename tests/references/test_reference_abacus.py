"""Reference numbers of places of digits."""

from __future__ import annotations

import pytest
import torch
from driving import built, with_parameters
from reference_cases import Case, SizedComparison, agree, run_sized, sized_fields
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding

NOT_COMPARED: dict[str, str] = {}


def tokens(case: Case) -> Tensor:
    return case.tensor("inputs.ids").long()


def reader(case: Case, **options: int) -> PositionEncoding:
    """The ids that the file calls digits stand for characters that are."""
    digits = case.at("hyperparameters.digit_tokens")
    size = max(*digits, int(tokens(case).max())) + 1
    alphabet = "".join(chr(0x4E00 + index) for index in range(size))
    block = {"name": "abacus", "digits": "".join(alphabet[index] for index in digits), **options}
    table = case.tensor("parameters.W")
    encoding = built(block, d_model=table.shape[1], n_heads=1, alphabet=alphabet)
    return with_parameters(encoding, table=table) if "longest" in options else encoding


def moved(case: Case, offset: int) -> Tensor:
    """The ids of a draw that moves all digits by the largest offset."""
    encoding, largest = reader(case, max_offset=offset), reader(case).positions(tokens(case)).ids.max() + offset
    draws = (encoding.positions(tokens(case), torch.Generator().manual_seed(seed)).ids for seed in range(1000))
    return next(ids for ids in draws if ids.max() == largest)


def evaluation(case: Case, field: str) -> None:
    agree(reader(case).positions(tokens(case)).ids, case.tensor(f"expected.{field}"))


def training(case: Case, field: str) -> None:
    agree(moved(case, int(field.removeprefix("index_with_k"))), case.tensor(f"expected.{field}"))


def rows(case: Case, field: str) -> None:
    """What is added to two texts of the batch."""
    expected = case.tensor(f"expected.{field}")
    chosen = [int(number) for number in field.split("_")[-2:]]
    encoding = reader(case, longest=len(case.at("parameters.W")) - 1, max_offset=0)
    x = torch.zeros(*tokens(case).shape, expected.shape[-1], dtype=torch.float64)
    agree(encoding.embed(x, encoding.positions(tokens(case)))[chosen], expected)


COMPARISONS: dict[str, SizedComparison] = {
    "index_eval": evaluation,
    "index_with_k#": training,
    "embedding_eval_rows_#_#": rows,
}


@pytest.mark.parametrize(("case", "field"), sized_fields("abacus", NOT_COMPARED))
def test_abacus_reference(case: Case, field: str) -> None:
    assert case.at("tolerance") == "exact"
    run_sized(COMPARISONS, case, field)
