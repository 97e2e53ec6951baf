"""Reference numbers of PaTH. Their layout is (T, H, d), and directions and strengths are given, not computed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from driving import block_of, built, layer_of, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.attention import allowed, written_out
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.path import Chunks, chunks
from pe_cli.encodings.views import Block

NOT_COMPARED: dict[str, str] = {}


def by_heads(case: Case, name: str) -> Tensor:
    return case.tensor(f"inputs.{name}").transpose(0, 1)[None]


def given(case: Case) -> Chunks:
    return chunks(by_heads(case, "k"), by_heads(case, "w"), by_heads(case, "beta"))


def plain(case: Case) -> tuple[PositionEncoding, Block]:
    q = by_heads(case, "q")[0]
    encoding = built("path", d_model=q.shape[0] * q.shape[2], n_heads=len(q), n_layers=1)
    block = block_of(encoding, layer_of(q, by_heads(case, "k")[0]))
    return encoding, replace(block, state=given(case), encoding=encoding)


def gated(case: Case, scale: float) -> tuple[PositionEncoding, Block]:
    """PaTH-FoX: an input with logit(exp(g · scale)) in its first columns makes forget gates whose logarithm that is."""
    q, g = by_heads(case, "q")[0], scale * case.tensor("inputs.g")
    heads, length, width = q.shape
    x = torch.zeros(length, heads * width, dtype=torch.float64)
    x[:, :heads] = -torch.log(torch.expm1(-g))
    encoding = built({"name": "mix", "parts": ["path", "fox"]}, d_model=heads * width, n_heads=heads, n_layers=1)
    reading = torch.eye(heads, heads * width, dtype=torch.float64)
    with_parameters(encoding, **{"parts.1.weight": reading, "parts.1.gate_bias": torch.zeros(heads)})
    layer = layer_of(q, by_heads(case, "k")[0], x=x)
    layer = layer.at(encoding.positions(torch.zeros(1, length, dtype=torch.long)))
    block = block_of(encoding, layer)
    return encoding, replace(block, state=(given(case), block.state[1]))


def compare(case: Case, field: str, encoding: PositionEncoding, block: Block) -> None:
    bias = encoding.dense_bias(block)
    scores = block.scores if bias is None else block.scores + bias
    ours = {
        "logits": scores.masked_fill(~allowed(encoding, block), -math.inf)[0],
        "output": written_out(encoding, block, by_heads(case, "v"))[0].transpose(0, 1),
    }
    for name in case.at(f"expected.{field}"):
        agree(ours[name], case.tensor(f"expected.{field}.{name}"), abs=case.tolerance())


COMPARISONS = {
    "no_gate": lambda case: compare(case, "no_gate", *plain(case)),
    "with_gate": lambda case: compare(case, "with_gate", *gated(case, scale=case.size("d_head") ** -0.5)),
    "gate_not_scaled_own_formula": lambda case: compare(case, "gate_not_scaled_own_formula", *gated(case, scale=1.0)),
}


@pytest.mark.parametrize(("case", "field"), fields("path", NOT_COMPARED))
def test_path_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
