"""KERPLE with the logarithmic kernel: what the paper states, and parameters that stay positive and trainable."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, bias, built, random_layer, sequential_bias, with_parameters
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def one_head(r1: float, r2: float) -> PositionEncoding:
    return with_parameters(built("kerple_log", n_heads=1), r1=tensor(r1), r2=tensor(r2))


def test_a_row_worked_by_hand() -> None:
    """r₁ = 2, r₂ = 1: −2 ln(1 + n)."""
    row = sequential_bias(one_head(2, 1), 4)[0, 3]
    torch.testing.assert_close(row, tensor(-2 * math.log(4), -2 * math.log(3), -2 * math.log(2), 0))


def test_each_head_follows_the_formula() -> None:
    encoding = built("kerple_log")
    ours = bias(encoding, random_layer(9).at(at([0, 0.5, 3, 3, 10, 11, 100, 4000, 4001])))
    ids = [0, 0.5, 3, 3, 10, 11, 100, 4000, 4001]
    for head in range(4):
        r1, r2 = (encoding.get_parameter(name)[head].item() for name in ("r1", "r2"))
        for i in range(9):
            for j in range(i + 1):
                expected = -r1 * math.log(1 + r2 * (ids[i] - ids[j]))
                assert ours[0, head, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_with_a_small_rate_it_is_a_line() -> None:
    """r₁ ln(1 + r₂ n) is near r₁ r₂ n while r₂ n is small, so far it is alibi with the slope r₁ r₂."""
    kerple = sequential_bias(one_head(0.25 / 0.01, 0.01), 3)[0, 2]
    alibi = sequential_bias(built("alibi"), 3)[0, 2]  # the slope of the first of four heads is 1/4
    torch.testing.assert_close(kerple, alibi, rtol=0.011, atol=0)


def test_a_key_far_away_keeps_weight() -> None:
    """At r₁ = 1, r₂ = 1 a key at distance n counts by 1/(1 + n): no exponential decay."""
    row = sequential_bias(one_head(1, 1), 1000)[0, -1].exp()
    assert row[0].item() == pytest.approx(1 / 1000)


def test_one_pair_of_parameters_for_each_head_and_all_layers() -> None:
    encoding = built("kerple_log", n_layers=6, n_heads=8)
    assert {name: tuple(value.shape) for name, value in encoding.state_dict().items()} == {"r1": (8,), "r2": (8,)}


def test_starts_uniform_between_zero_and_two_and_zero_and_one() -> None:
    encoding = built("kerple_log", n_heads=4096, d_model=4096)
    for name, high in (("r1", 2.0), ("r2", 1.0)):
        values = encoding.get_parameter(name)
        assert 0 <= values.min() < 0.01 * high
        assert 0.99 * high < values.max() <= high
        assert values.mean().item() == pytest.approx(high / 2, rel=0.05)


@pytest.mark.parametrize("outside", [-3.0, 0.0, 0.009])
def test_below_the_bound_the_bound_counts(outside: float) -> None:
    assert torch.equal(sequential_bias(one_head(outside, 0.5), 6), sequential_bias(one_head(0.01, 0.5), 6))
    assert torch.equal(sequential_bias(one_head(0.5, outside), 6), sequential_bias(one_head(0.5, 0.01), 6))
    numbers = one_head(outside, outside).numbers(1)
    assert numbers["r1"].item() == numbers["r2"].item() == 0.01


@pytest.mark.parametrize("name", ["r1", "r2"])
def test_a_parameter_below_the_bound_can_come_back(name: str) -> None:
    """Steps up get through; steps further down end at the bound."""
    encoding = one_head(-1.0, -1.0)
    parameter = encoding.get_parameter(name)
    sequential_bias(encoding, 5)[0, 4].sum().backward()  # descending it makes the bias more negative: r goes up
    assert parameter.grad is not None
    assert parameter.grad.item() < 0
    parameter.grad = None
    (-sequential_bias(encoding, 5)[0, 4].sum()).backward()
    assert parameter.grad is not None
    assert parameter.grad.item() == 0


def test_gradients_are_those_of_the_formula() -> None:
    encoding = one_head(1.5, 0.5)
    sequential_bias(encoding, 3)[0, 2].sum().backward()
    r1, r2 = (encoding.get_parameter(name).grad for name in ("r1", "r2"))
    assert r1 is not None
    assert r2 is not None
    assert r1.item() == pytest.approx(-math.log(1.5) - math.log(2))
    assert r2.item() == pytest.approx(-1.5 * (1 / 1.5 + 2 / 2))


def test_it_has_no_options() -> None:
    with pytest.raises(ConfigError, match="r1"):
        built({"name": "kerple_log", "r1": 1})
