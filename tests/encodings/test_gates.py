"""fox and cable: biases that sum what each character after the key takes away, up to the query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from driving import at, bias, block_of, built, logits, random_layer, with_parameters
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView, Positions


@dataclass(frozen=True)
class Gate:
    """An encoding whose steps are log σ(± (w · x + b)); the names of the option for b and of the parameter."""

    name: str
    sign: int
    option: str
    parameter: str

    def built(self, b: float, dtype: torch.dtype = torch.float64, **sizes: int) -> PositionEncoding:
        return built({"name": self.name, self.option: b}, dtype, **sizes)

    def step(self, x: Tensor, weight: Tensor, b: float) -> float:
        return -math.log(1 + math.exp(-self.sign * ((x * weight).sum().item() + b)))


GATES = [Gate("fox", 1, "gate_bias", "gate_bias"), Gate("cable", -1, "start", "increment_bias")]
every_gate = pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)


@pytest.mark.parametrize("index", [0, 1])
@every_gate
def test_the_bias_is_the_sum_of_the_steps_after_the_key(gate: Gate, index: int) -> None:
    layer, encoding = random_layer(7, index=index), gate.built(0.5)
    with torch.no_grad():
        encoding.get_parameter("weight").mul_(30)
    weight = encoding.get_parameter("weight")[index, 3]
    steps = [gate.step(x, weight, 0.5) for x in layer.x[1]]
    ours = bias(encoding, layer)
    for i in range(7):
        for j in range(i + 1):
            assert ours[1, 3, i, j].item() == pytest.approx(sum(steps[j + 1 : i + 1]), abs=1e-12)


@pytest.mark.parametrize(("b", "half"), [(0.0, 1), (5.0, 103)])
@every_gate
def test_at_the_start_a_weight_fades_by_half(gate: Gate, b: float, half: int) -> None:
    encoding = with_parameters(gate.built(gate.sign * b), weight=torch.zeros(1, dtype=torch.float64))
    row = bias(encoding, random_layer(129))[0, 0, -1].exp()
    assert row[128 - half].item() == pytest.approx(0.5, abs=0.002)


@every_gate
def test_layers_and_heads_have_their_own_steps(gate: Gate) -> None:
    encoding = built(gate.name, n_layers=3)
    assert encoding.get_parameter("weight").shape == (3, 4, 32)
    assert encoding.get_parameter(gate.parameter).shape == (3, 4)
    first, second = (bias(encoding, random_layer(5, index=index)) for index in (0, 1))
    assert (first - second).abs()[..., 4, 0].max() > 1e-3


@every_gate
def test_ids_are_not_looked_at(gate: Gate) -> None:
    layer, encoding = random_layer(6), built(gate.name)
    assert torch.equal(logits(encoding, layer), logits(encoding, layer.at(at([3, 1, 1, 0, 9.5, 400]))))


@every_gate
def test_near_keys_keep_their_steps_in_a_long_text(gate: Gate) -> None:
    """The sums reach −2800 here: in float32 their differences alone would be off by 1e-4."""
    sizes = {"n_heads": 1, "n_layers": 1, "d_model": 2}
    encoding = with_parameters(gate.built(0.0, torch.float32, **sizes), weight=torch.zeros(1))
    nothing = torch.zeros(1, 1, 4096, 2)
    layer = LayerView(0, nothing[0], nothing, nothing, Positions.sequential(4096))
    ours = encoding.dense_bias(block_of(encoding, layer, slice(4090, 4096)))
    assert ours is not None
    assert ours.dtype == torch.float32
    assert ours[0, 0, 5, 4085:].tolist() == pytest.approx([n * math.log(0.5) for n in range(10, -1, -1)], abs=1e-6)
