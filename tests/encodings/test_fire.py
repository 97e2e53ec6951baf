"""FIRE: distances measured against how far the query has come, and read by a small network."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, bias, block_of, built, layer_of, random_layer, sequential_bias, with_parameters
from torch import Tensor

from pe_cli.encodings import _distance
from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.encodings.views import Block
from pe_cli.errors import ConfigError


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def plain(**options: Any) -> PositionEncoding:
    """One head, and a network that gives back what it reads."""
    encoding = built({"name": "fire", "width": 1, **options}, n_heads=1)
    network = {"network.weights.0": tensor(1), "network.biases.0": tensor(0), "network.weights.1": tensor(1)}
    return with_parameters(encoding, scale=tensor(0.1), **network)


def psi(x: float, scale: float = 0.1) -> float:
    return math.log(1 + abs(scale * x))


def argument(i: float, j: float, limit: float, scale: float = 0.1) -> float:
    return psi(i - j, scale) / (psi(max(i, limit), scale) + 1e-6)


def test_rows_before_the_threshold_share_a_divisor_and_later_ones_use_their_own() -> None:
    ours = sequential_bias(plain(threshold=6), 12)[0]
    for i in range(12):
        for j in range(i + 1):
            assert ours[i, j].item() == pytest.approx(argument(i, j, 6), abs=1e-12)
    assert ours[3, 1].item() == ours[5, 3].item()
    assert ours[9, 7].item() < ours[8, 6].item() < ours[6, 4].item()


def test_the_first_key_stands_at_one_from_the_threshold_on() -> None:
    """At every length, which is what lets a network meet longer texts with numbers that it knows."""
    first = sequential_bias(plain(threshold=4), 2000)[0, :, 0]
    torch.testing.assert_close(first[4:], torch.ones_like(first[4:]), atol=1e-5, rtol=0)
    assert first[3] < 0.9


def test_each_layer_and_head_follows_the_formula() -> None:
    encoding = built({"name": "fire", "threshold": 5.0, "width": 3})
    with_parameters(encoding, scale=tensor(0.3, 0.7), multiplier=tensor(1.2, -1.6))
    ids = [0, 1, 2.5, 4, 9, 300]
    for index, (scale, limit) in enumerate([(0.3, 6.0), (0.7, 8.0)]):
        ours = bias(encoding, random_layer(6, index=index).at(at(ids)))
        first, inner, last = (
            encoding.get_parameter(f"network.{name}")[index].tolist() for name in ("weights.0", "biases.0", "weights.1")
        )
        for head in range(4):
            for i in range(6):
                for j in range(i + 1):
                    x = argument(ids[i], ids[j], limit, scale)
                    hidden = [max(0.0, row[0] * x + b) for row, b in zip(first, inner, strict=True)]
                    expected = sum(w * h for w, h in zip(last[head], hidden, strict=True))
                    assert ours[0, head, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_the_id_of_the_query_counts_and_not_its_place() -> None:
    moved = bias(plain(threshold=2), random_layer(3, n_heads=1).at(at([10, 20, 30])))[0, 0]
    assert moved[2, 0].item() == pytest.approx(psi(20) / psi(30), abs=1e-5)
    assert built("fire").sees is Sees.ABSOLUTE


def test_the_threshold_is_a_quarter_of_the_training_length_unless_stated() -> None:
    assert built("fire", train_length=2048).numbers(1)["thresholds"].tolist() == [512, 512]
    assert built({"name": "fire", "threshold": 7.5}).numbers(1)["thresholds"].tolist() == [7.5, 7.5]


def test_in_training_most_rows_show_the_interpolation_and_the_threshold_is_learned() -> None:
    encoding = built("fire", train_length=64)
    bias_of_all = sequential_bias(encoding, 64).tril()
    bias_of_all.square().sum().backward()
    for name in ("scale", "multiplier"):
        gradient = encoding.get_parameter(name).grad
        assert gradient is not None
        assert gradient[0] != 0
    ones = sequential_bias(plain(), 16)[0, 4:, 0]  # the training length is 16
    torch.testing.assert_close(ones, torch.ones_like(ones), atol=1e-5, rtol=0)


def test_own_parameters_for_each_layer_or_one_set_for_all() -> None:
    """776 = 4 layers of 32 + 32 + 4 · 32 weights, c and m."""
    own, shared = (built({"name": "fire", "layers": layers}, n_layers=4) for layers in ("own", "shared"))
    assert sum(parameter.numel() for parameter in own.parameters()) == 4 * (32 + 32 + 4 * 32 + 2)
    assert sum(parameter.numel() for parameter in shared.parameters()) == 32 + 32 + 4 * 32 + 2
    first, last = (bias(shared, random_layer(5, index=index)) for index in (0, 3))
    assert torch.equal(first, last)
    first, last = (bias(own, random_layer(5, index=index)) for index in (0, 3))
    assert (first - last)[..., 4, :].abs().max() > 1e-3


def test_a_negative_multiplier_or_scale_counts_by_its_size() -> None:
    encoding = plain(threshold=5)
    expected = sequential_bias(encoding, 9)
    with_parameters(encoding, scale=tensor(-0.1), multiplier=tensor(-1))
    torch.testing.assert_close(sequential_bias(encoding, 9), expected)


def test_finite_where_threshold_and_id_are_zero() -> None:
    encoding = with_parameters(plain(), multiplier=tensor(0))
    ours = sequential_bias(encoding, 3)[0]
    assert ours[0, 0].item() == 0
    ours.tril().nan_to_num(neginf=0).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoding.parameters())


def dense(encoding: PositionEncoding, block: Block) -> Tensor:
    found = encoding.dense_bias(block)
    assert found is not None
    return found


def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    encoding, layer = built("fire"), random_layer(9)
    whole = dense(encoding, block_of(encoding, layer))
    monkeypatch.setattr(_distance, "PIECE", 7)
    torch.testing.assert_close(dense(encoding, block_of(encoding, layer)), whole)


def test_every_row_of_a_batch_has_its_own_ids() -> None:
    encoding, layer = plain(threshold=2), random_layer(3, n_heads=1)
    rows = torch.tensor([[0.0, 1, 2], [0, 10, 30]])
    ours = bias(encoding, layer_of(layer.q[0], layer.k[0]).at(type(layer.positions)(rows)))
    assert ours.shape == (2, 1, 3, 3)
    assert ours[1, 0, 2, 1].item() == pytest.approx(psi(20) / psi(30), abs=1e-5)
    assert ours[0, 0, 2, 1].item() == pytest.approx(psi(1) / psi(2), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold"),
        ({"scale": -1}, "scale"),
        ({"width": 0}, "width"),
        ({"layers": "some"}, "layers"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "fire", **options})
