"""Reference numbers of BiPE: ids read from the text, and ALiBi between segments."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import bias, built
from reference_cases import Case, agree, run_sized, sized_fields
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED = {"alibi_x#.H": "the number of heads of that group"}


def encoding_of(case: Case, n_heads: int = 1, **options: Any) -> tuple[PositionEncoding, Tensor]:
    """With the ids of the file: its separators are characters of an alphabet as large as they need."""
    tokens = torch.tensor(case.at("inputs.ids"))
    numbers = case.at("hyperparameters.separators")
    alphabet = "".join(chr(0x4E00 + number) for number in range(max(int(tokens.max()), *numbers) + 1))
    block = {"name": "bipe", "separators": "".join(alphabet[number] for number in numbers), **options}
    return built(block, d_model=4 * n_heads, n_heads=n_heads, alphabet=alphabet), tokens


def ids(case: Case, field: str) -> None:
    group, part = field.split(".")
    encoding, tokens = encoding_of(case, max_offset=int(group.removeprefix("train_scale_")) - 1)
    found = encoding.positions(tokens).parts[["intra", "segment"].index(part)].ids
    agree(found, case.tensor(f"expected.{field}"), **case.limits())


def alibi(case: Case, field: str) -> tuple[PositionEncoding, Tensor]:
    group = field.split(".")[0]
    options = {"relative": "alibi", "segment_scale": float(group.removeprefix("alibi_x"))}
    return encoding_of(case, case.at(f"expected.{group}.H"), **options)


def segment_bias(case: Case, field: str) -> Tensor:
    """(B, H, T, T)"""
    encoding, tokens = alibi(case, field)
    nothing = torch.zeros(len(tokens), encoding.spec.n_heads, tokens.shape[1], 4, dtype=torch.float64)
    x = torch.zeros(*tokens.shape, encoding.spec.d_model, dtype=torch.float64)
    return bias(encoding, LayerView(0, x, nothing, nothing, encoding.positions(tokens)))


def slopes(case: Case, field: str) -> None:
    encoding, _ = alibi(case, field)
    ours = encoding.numbers(1)["alibi.slopes"] * encoding.options.segment_scale
    agree(ours, case.tensor(f"expected.{field}"), **case.limits())


def bias_of_the_first_text(case: Case, field: str) -> None:
    agree(segment_bias(case, field)[0], case.tensor(f"expected.{field}"), **case.limits())


def key_only_bias(case: Case, field: str) -> None:
    """Published for the first texts: a term of the key alone differs by a constant in each row."""
    theirs = case.tensor(f"expected.{field}")
    ours = segment_bias(case, field)[: len(theirs)]
    shifted = theirs[:, :, None, :] - theirs[:, :, :, None]
    agree(ours, shifted.masked_fill(ours.isinf(), float("nan")), **case.limits())


COMPARISONS = {
    "train_scale_#.intra": ids,
    "train_scale_#.segment": ids,
    "alibi_x#.slopes_x#": slopes,
    "alibi_x#.key_only_bias": key_only_bias,
    "alibi_x#.bias_row#": bias_of_the_first_text,
}


@pytest.mark.parametrize(("case", "field"), sized_fields("bipe", NOT_COMPARED))
def test_bipe_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
