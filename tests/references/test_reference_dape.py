"""Reference numbers of DAPE: the logits are given, and the bias comes from parameters in the file."""

from __future__ import annotations

import math

import pytest
import torch
from driving import built, layer_of, logits, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings.base import Family, PositionEncoding, Sees
from pe_cli.encodings.views import Block, LayerView

NOT_COMPARED: dict[str, str] = {}


class Given(PositionEncoding):
    """An encoding whose bias is a tensor (H, T, T)."""

    name, family, sees = "given", Family.BIAS, Sees.ABSOLUTE

    def __init__(self, like: PositionEncoding, static: Tensor) -> None:
        super().__init__(like.options, like.spec)
        self.static = static

    def bias(self, block: Block) -> Tensor:
        return self.static[None, :, block.queries, block.keys]


def layer(case: Case) -> LayerView:
    """Heads as wide as the text is long: with keys that are unit vectors, queries are logits times √d."""
    given = case.tensor("inputs.S")
    return layer_of(given * math.sqrt(given.shape[-1]), torch.eye(given.shape[-1]).expand_as(given).double())


def around(case: Case, encoding: str) -> PositionEncoding:
    heads, length = case.size("H"), case.size("T")
    block = {"name": "dape", "encoding": encoding, "hidden": case.size("mlp_width")}
    dape = built(block, d_model=heads * length, n_heads=heads, n_layers=1)
    return with_parameters(
        dape,
        first=case.tensor("parameters.f_W1"),
        first_bias=case.tensor("parameters.f_b1"),
        second=case.tensor("parameters.f_W2"),
    )


def compare(case: Case, field: str, encoding: PositionEncoding) -> None:
    """The published second bias raises all logits of a head alike; it is not built."""
    ours = logits(encoding, layer(case))[0] + case.tensor("parameters.f_b2")[:, None, None]
    agree(ours, case.tensor(f"expected.{field}.logits"), abs=case.tolerance())


def alibi(case: Case) -> None:
    encoding = around(case, "alibi")
    slopes = encoding.numbers(1)["slopes"]
    agree(slopes, case.tensor("parameters.alibi_slopes"), rel=1e-6)
    compare(case, "alibi", encoding)


def kerple_log(case: Case) -> None:
    encoding = around(case, "kerple_log")
    r1, r2 = (case.tensor(f"parameters.kerple_{name}") for name in "pa")
    compare(case, "kerple_log", with_parameters(encoding, **{"inner.r1": r1, "inner.r2": r2}))


def fire(case: Case) -> None:
    """The published FIRE in DAPE has a leaky unit where plain FIRE has none, so its bias is computed here."""
    sizes = case.at("hyperparameters.fire")
    index = torch.arange(case.size("T"), dtype=torch.float64)
    distance = (index[:, None] - index).clamp(min=0)
    threshold = abs(sizes["L_init"] * sizes["L_multiplier"])
    ratio = torch.log1p(sizes["c"] * distance) / (torch.log1p(sizes["c"] * index.clamp(min=threshold)) + 1e-6)[:, None]
    w1, b1, w2, b2 = (case.tensor(f"parameters.fire_{name}") for name in ("W1", "b1", "W2", "b2"))
    static = F.linear(F.leaky_relu(F.linear(ratio[..., None], w1, b1)), w2, b2).movedim(-1, 0)
    encoding = around(case, "alibi")
    encoding.inner = Given(encoding, static)
    compare(case, "fire", encoding)


COMPARISONS = {"alibi": alibi, "kerple_log": kerple_log, "fire": fire}


@pytest.mark.parametrize(("case", "field"), fields("dape", NOT_COMPARED))
def test_dape_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
