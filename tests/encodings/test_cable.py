"""Context-aware biases: the sum of the steps after the key, up to the query."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, bias, block_of, built, logits, output, random_layer, sequential_bias, with_parameters
from torch import Tensor

from pe_cli.encodings.views import LayerView, Positions


def step(x: Tensor, weight: Tensor, increment_bias: float) -> float:
    return -math.log(1 + math.exp((x * weight).sum().item() + increment_bias))


@pytest.mark.parametrize("index", [0, 1])
def test_bias_is_the_sum_of_the_steps_after_the_key(index: int) -> None:
    layer, encoding = random_layer(7, index=index), built({"name": "cable", "start": 0.5})
    with torch.no_grad():
        encoding.get_parameter("weight").mul_(30)
    weight = encoding.get_parameter("weight")[index, 3]
    steps = [step(x, weight, 0.5) for x in layer.x[1]]
    ours = bias(encoding, layer)
    for i in range(7):
        for j in range(i + 1):
            assert ours[1, 3, i, j].item() == pytest.approx(sum(steps[j + 1 : i + 1]), abs=1e-12)


def test_it_is_fox_with_the_opposite_sign() -> None:
    cable, fox = built({"name": "cable", "start": 1.5}), built("fox")
    opposite = {"weight": -cable.get_parameter("weight"), "gate_bias": -cable.get_parameter("increment_bias")}
    layer = random_layer(9)
    torch.testing.assert_close(logits(cable, layer), logits(with_parameters(fox, **opposite), layer))


def test_without_weights_it_is_alibi_with_learned_slopes() -> None:
    """softplus(b) = m, for the slopes m of alibi."""
    slopes = built("alibi").numbers(1)["slopes"].double()
    encoding = with_parameters(
        built("cable"), weight=torch.zeros(1, dtype=torch.float64), increment_bias=slopes.expm1().log()
    )
    torch.testing.assert_close(sequential_bias(encoding, 12), sequential_bias(built("alibi"), 12))


@pytest.mark.parametrize(("start", "half"), [(0.0, 1), (-5.0, 103)])
def test_at_the_start_a_weight_fades_by_half(start: float, half: int) -> None:
    encoding = built({"name": "cable", "start": start}, n_layers=1)
    with_parameters(encoding, weight=torch.zeros(1, dtype=torch.float64))
    row = sequential_bias(encoding, 129)[0, -1].exp()
    assert row[128 - half].item() == pytest.approx(0.5, abs=0.002)


def test_layers_and_heads_have_their_own_steps() -> None:
    encoding = built("cable", n_layers=3)
    assert encoding.get_parameter("weight").shape == (3, 4, 32)
    assert encoding.get_parameter("increment_bias").shape == (3, 4)
    first, second = (bias(encoding, random_layer(5, index=index)) for index in (0, 1))
    assert (first - second).abs()[..., 4, 0].max() > 1e-3


def test_ids_are_not_looked_at() -> None:
    layer = random_layer(6)
    assert torch.equal(logits(built("cable"), layer), logits(built("cable"), layer.at(at([3, 1, 1, 0, 9.5, 400]))))


def test_near_keys_keep_their_steps_in_a_long_text() -> None:
    """The sums reach −2800 here: in float32 their differences alone would be off by 1e-4."""
    encoding = with_parameters(built("cable", torch.float32, n_heads=1, n_layers=1, d_model=2), weight=torch.zeros(1))
    nothing = torch.zeros(1, 1, 4096, 2)
    layer = LayerView(0, nothing[0], nothing, nothing, Positions.sequential(4096))
    ours = encoding.dense_bias(block_of(encoding, layer, slice(4090, 4096)))
    assert ours is not None
    assert ours.dtype == torch.float32
    assert ours[0, 0, 5, 4085:].tolist() == pytest.approx([n * math.log(0.5) for n in range(10, -1, -1)], abs=1e-6)


@pytest.mark.parametrize("start", [0, 3, 8])
def test_a_block_of_queries_gives_what_the_whole_gives(start: int) -> None:
    layer, v = random_layer(9), random_layer(9, seed=1).k
    whole = output(built("cable"), layer, v)
    torch.testing.assert_close(output(built("cable"), layer, v, slice(start, 9)), whole[:, :, start:])
