"""KERPLE with the power kernel: what the paper states, and parameters that stay in bounds and trainable."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, bias, built, random_layer, sequential_bias, with_parameters
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def one_head(r1: float, r2: float) -> PositionEncoding:
    return with_parameters(built("kerple_power", n_heads=1), r1=tensor(r1), r2=tensor(r2))


def test_rows_worked_by_hand() -> None:
    assert sequential_bias(one_head(0.5, 2), 4)[0, 3].tolist() == [-4.5, -2.0, -0.5, 0.0]
    row = bias(one_head(0.5, 0.5), random_layer(3, n_heads=1).at(at([0, 7, 16])))[0, 0, 2]
    torch.testing.assert_close(row, tensor(-2, -1.5, 0))


def test_power_one_is_alibi() -> None:
    """With slopes above the bound: alibi's last head by default, 2⁻⁸, lies below it."""
    alibi_encoding = built({"name": "alibi", "max_exponent": 6.0})
    slopes = alibi_encoding.numbers(1)["slopes"]
    encoding = with_parameters(built("kerple_power"), r1=slopes, r2=tensor(1))
    ours, alibi = (sequential_bias(e, 40).tril() for e in (encoding, alibi_encoding))
    torch.testing.assert_close(ours, alibi, rtol=1e-12, atol=0)


def test_each_head_follows_the_formula() -> None:
    encoding = built("kerple_power")
    ids = [0, 0.5, 3, 3, 10, 4000]
    ours = bias(encoding, random_layer(6).at(at(ids)))
    for head in range(4):
        r1, r2 = (encoding.get_parameter(name)[head].item() for name in ("r1", "r2"))
        for i in range(6):
            for j in range(i + 1):
                expected = -r1 * (ids[i] - ids[j]) ** r2
                assert ours[0, head, i, j].item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_one_pair_of_parameters_for_each_head_and_all_layers() -> None:
    encoding = built("kerple_power", n_layers=6, n_heads=8)
    assert {name: tuple(value.shape) for name, value in encoding.state_dict().items()} == {"r1": (8,), "r2": (8,)}


def test_starts_uniform_between_zero_and_one_and_zero_and_two() -> None:
    encoding = built("kerple_power", n_heads=4096, d_model=4096)
    for name, high in (("r1", 1.0), ("r2", 2.0)):
        values = encoding.get_parameter(name)
        assert 0 <= values.min() < 0.01 * high
        assert 0.99 * high < values.max() <= high
        assert values.mean().item() == pytest.approx(high / 2, rel=0.05)


@pytest.mark.parametrize(
    ("stated", "used"),
    [((-1.0, 0.5), (0.01, 0.5)), ((0.5, -1.0), (0.5, 0.01)), ((0.5, 2.7), (0.5, 2.0)), ((3.0, 2.0), (3.0, 2.0))],
)
def test_outside_the_bounds_the_nearer_one_counts(stated: tuple[float, float], used: tuple[float, float]) -> None:
    assert torch.equal(sequential_bias(one_head(*stated), 6), sequential_bias(one_head(*used), 6))
    numbers = one_head(*stated).numbers(1)
    assert (numbers["r1"].item(), numbers["r2"].item()) == used


@pytest.mark.parametrize(("power", "sign"), [(-1.0, 1), (2.7, -1)])
def test_a_power_outside_can_come_back_and_goes_no_further(power: float, sign: int) -> None:
    """With sign 1 descent makes the bias more negative: the power goes up."""
    encoding = one_head(0.5, power)
    parameter = encoding.get_parameter("r2")
    (sign * sequential_bias(encoding, 5)[0, 4].sum()).backward()
    assert parameter.grad is not None
    assert parameter.grad.item() * sign < 0
    parameter.grad = None
    (-sign * sequential_bias(encoding, 5)[0, 4].sum()).backward()
    assert parameter.grad is not None
    assert parameter.grad.item() == 0


def test_the_distance_zero_has_a_gradient_of_zero() -> None:
    """The derivative of 0^r by r is 0 ln 0, which must not come out as NaN."""
    encoding = one_head(0.5, 0.3)
    sequential_bias(encoding, 3)[0, 2].sum().backward()
    r1, r2 = (encoding.get_parameter(name).grad for name in ("r1", "r2"))
    assert r1 is not None
    assert r2 is not None
    assert r1.item() == pytest.approx(-(2**0.3) - 1)
    assert r2.item() == pytest.approx(-0.5 * 2**0.3 * math.log(2))


def test_far_keys_have_finite_biases() -> None:
    encoding = with_parameters(
        built("kerple_power", torch.float32, n_heads=1), r1=torch.ones(1), r2=torch.full((1,), 9)
    )
    row = bias(encoding, random_layer(2, n_heads=1).at(at([0, 2**24])))
    assert row[0, 0, 1].tolist() == [-(2.0**48), 0.0]
