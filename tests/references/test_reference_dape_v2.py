"""Reference numbers of DAPE's second version. The published code ends a text with hidden columns of zero."""

from __future__ import annotations

import math

import pytest
import torch
from driving import built, layer_of, logits, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView

NOT_COMPARED: dict[str, str] = {}


def layer(case: Case) -> LayerView:
    """Heads as wide as the text is long: with keys that are unit vectors, queries are logits times √d."""
    given = case.tensor("inputs.S")
    return layer_of(given * math.sqrt(given.shape[-1]), torch.eye(given.shape[-1]).expand_as(given).double())


def encoding_of(case: Case) -> PositionEncoding:
    heads, length = case.size("H"), case.size("T")
    block = {"name": "dape_v2", "encoding": "alibi", "hidden": case.size("width"), "kernel": case.size("kernel")}
    encoding = built(block, d_model=heads * length, n_heads=heads, n_layers=1)
    agree(encoding.numbers(1)["slopes"], case.tensor("parameters.alibi_slopes"), rel=1e-6)
    return with_parameters(
        encoding,
        first=case.tensor("parameters.conv1_W")[:, :, 0],
        first_bias=case.tensor("parameters.conv1_b"),
        second=case.tensor("parameters.conv2_W")[:, :, 0],
    )


def read_beyond_the_end(case: Case) -> Tensor:
    """What the hidden columns after the last key add to the logits of the last queries, (H, T, T)."""
    index, side = torch.arange(case.size("T")), case.size("kernel") // 2
    static = case.tensor("parameters.alibi_slopes")[:, None, None] * (index - index[:, None])
    both = torch.cat((case.tensor("inputs.S"), static)).tril()
    first, second = case.tensor("parameters.conv1_W"), case.tensor("parameters.conv2_W")
    longer = F.pad(both, (side, 2 * side))[None]
    hidden = F.leaky_relu(F.conv2d(longer, first, case.tensor("parameters.conv1_b")))
    hidden[..., : len(index)] = 0
    return F.conv2d(F.pad(hidden, (side, 0)), second)[0]


def compare_logits(case: Case) -> None:
    """The published second bias raises all logits of a head alike; it is not built."""
    ours = logits(encoding_of(case), layer(case))[0] + case.tensor("parameters.conv2_b")[:, None, None]
    agree(ours - read_beyond_the_end(case), case.tensor("expected.logits"), abs=case.tolerance())


COMPARISONS = {"logits": compare_logits}


@pytest.mark.parametrize(("case", "field"), fields("dape_v2", NOT_COMPARED))
def test_dape_v2_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
