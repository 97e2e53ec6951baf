"""Forgetting attention: the bias is the sum of the log gates after the key, up to the query."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, bias, block_of, built, logits, output, random_layer, with_parameters
from torch import Tensor

from pe_cli.encodings.views import LayerView, Positions


def log_gate(x: Tensor, weight: Tensor, gate_bias: float) -> float:
    return -math.log1p(math.exp(-((x * weight).sum().item() + gate_bias)))


@pytest.mark.parametrize("index", [0, 1])
def test_bias_is_the_sum_over_the_gates_after_the_key(index: int) -> None:
    layer = random_layer(7, index=index)
    encoding = built({"name": "fox", "gate_bias": 0.5})
    ours = bias(encoding, layer)
    weight = encoding.get_parameter("weight")[index, 3]
    gates = [log_gate(x, weight, 0.5) for x in layer.x[1]]
    for i in range(7):
        for j in range(i + 1):
            assert ours[1, 3, i, j].item() == pytest.approx(sum(gates[j + 1 : i + 1]), abs=1e-12)


def test_layers_have_their_own_gates() -> None:
    encoding = built("fox", n_layers=3)
    assert encoding.get_parameter("weight").shape == (3, 4, 32)
    assert encoding.get_parameter("gate_bias").shape == (3, 4)
    first, second = (bias(encoding, random_layer(5, index=index)) for index in (0, 1))
    assert (first - second).abs()[..., 4, 0].max() > 1e-3


def test_ids_are_not_looked_at() -> None:
    layer = random_layer(6)
    assert torch.equal(logits(built("fox"), layer), logits(built("fox"), layer.at(at([3, 1, 1, 0, 9.5, 400]))))


def test_at_the_start_a_weight_fades_by_half_over_103_characters() -> None:
    encoding = built("fox", n_heads=1, n_layers=1)
    with_parameters(encoding, weight=torch.zeros(1, dtype=torch.float64))
    row = bias(encoding, random_layer(129, n_heads=1))[0, 0, -1].exp()
    assert row[128 - 103].item() == pytest.approx(0.5, abs=0.002)
    assert encoding.numbers(1)["forget_gates"].item() == pytest.approx(0.99331, abs=1e-5)


def test_near_keys_keep_their_gates_in_a_long_text() -> None:
    """The sums reach −2800 here: in float32 their differences alone would be off by 1e-4."""
    encoding = built({"name": "fox", "gate_bias": 0.0}, torch.float32, n_heads=1, n_layers=1, d_model=2)
    with_parameters(encoding, weight=torch.zeros(1))
    x = torch.zeros(1, 4096, 2)
    nothing = torch.zeros(1, 1, 4096, 2)
    layer = LayerView(0, x, nothing, nothing, Positions.sequential(4096))
    ours = encoding.dense_bias(block_of(encoding, layer, slice(4090, 4096)))
    assert ours is not None
    assert ours.dtype == torch.float32
    assert ours[0, 0, 5, 4085:].tolist() == pytest.approx([n * math.log(0.5) for n in range(10, -1, -1)], abs=1e-6)


@pytest.mark.parametrize("start", [0, 3, 8])
def test_a_block_of_queries_gives_what_the_whole_gives(start: int) -> None:
    layer = random_layer(9)
    v = random_layer(9, seed=1).k
    encoding = built("fox")
    whole = output(encoding, layer, v)
    torch.testing.assert_close(output(encoding, layer, v, slice(start, 9)), whole[:, :, start:])


def test_closed_gates_stay_finite() -> None:
    layer = random_layer(8)
    encoding = built({"name": "fox", "gate_bias": -200.0})
    result = output(encoding, layer, layer.k)
    result.sum().backward()
    torch.testing.assert_close(result, layer.k)  # all is forgotten but the character itself
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoding.parameters())
