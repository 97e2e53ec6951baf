"""Log-spaced continuous position bias: one small network for all distances."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, bias, built, random_layer, sequential_bias, with_parameters
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings import _distance
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def plain(**options: Any) -> PositionEncoding:
    """One head, and a network that gives back what it reads."""
    encoding = built({"name": "log_cpb", "width": 1, **options}, n_heads=1)
    network = {"network.weights.0": tensor(1), "network.biases.0": tensor(0), "network.weights.1": tensor(1)}
    return with_parameters(encoding, **network)


def test_the_network_reads_the_logarithm_of_one_plus_the_distance() -> None:
    row = sequential_bias(plain(), 4)[0, 3]
    torch.testing.assert_close(row, tensor(math.log(4), math.log(3), math.log(2), 0))


def test_or_the_distance_itself() -> None:
    assert sequential_bias(plain(spacing="linear"), 4)[0, 3].tolist() == [3, 2, 1, 0]


def test_a_longer_text_is_not_far_from_a_trained_one() -> None:
    """The reason for the logarithm: 32 times the length is 1.7 times what the network has read."""
    far, trained = (sequential_bias(plain(), length)[0, -1, 0].item() for length in (4096, 128))
    assert far / trained == pytest.approx(math.log(4096) / math.log(128))
    assert far / trained == pytest.approx(12 / 7)


@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
@pytest.mark.parametrize(("activation", "function"), [("relu", F.relu), ("silu", F.silu)])
def test_each_layer_has_an_mlp_of_its_own(hidden_layers: int, activation: str, function: Any) -> None:
    options = {"width": 5, "hidden_layers": hidden_layers, "activation": activation}
    encoding = built({"name": "log_cpb", **options})
    ids = [0, 0.5, 3, 3, 10, 4000]
    for index in range(2):
        ours = bias(encoding, random_layer(6, index=index).at(at(ids)))
        for i in range(6):
            for j in range(i + 1):
                x = tensor(math.log(1 + ids[i] - ids[j]))
                for n in range(hidden_layers):
                    weight, shift = (encoding.get_parameter(f"network.{kind}.{n}") for kind in ("weights", "biases"))
                    x = function(F.linear(x, weight[index], shift[index]))
                expected = F.linear(x, encoding.get_parameter(f"network.weights.{hidden_layers}")[index])
                torch.testing.assert_close(ours[0, :, i, j], expected)


def test_the_sizes_of_swin_by_default() -> None:
    shapes = {name: tuple(value.shape) for name, value in built("log_cpb").state_dict().items()}
    assert shapes == {
        "network.weights.0": (2, 512, 1),
        "network.biases.0": (2, 512),
        "network.weights.1": (2, 4, 512),
    }


def test_starts_as_linear_layers_do() -> None:
    encoding = built({"name": "log_cpb", "width": 1024, "hidden_layers": 2})
    for name, limit in {
        "weights.0": 1,
        "biases.0": 1,
        "weights.1": 1 / 32,
        "biases.1": 1 / 32,
        "weights.2": 1 / 32,
    }.items():
        values = encoding.get_parameter(f"network.{name}").abs()
        assert 0.99 * limit < values.max() <= limit
        assert values.mean().item() == pytest.approx(limit / 2, rel=0.1)


def test_each_distance_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of 40 has 40 distances in its 1600 pairs."""
    encoding, seen = built("log_cpb"), []
    forward = _distance.Network.forward

    def counted(self: _distance.Network, index: int, numbers: Tensor) -> Tensor:
        seen.append(numbers.numel())
        return forward(self, index, numbers)

    monkeypatch.setattr(_distance.Network, "forward", counted)
    whole = sequential_bias(encoding, 40)
    assert seen == [40]
    monkeypatch.setattr(_distance, "PIECE", 7)
    torch.testing.assert_close(sequential_bias(encoding, 40), whole)
    assert seen[1:] == [7, 7, 7, 7, 7, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spacing": "root"}, "spacing"),
        ({"width": 0}, "width"),
        ({"hidden_layers": 0}, "hidden_layers"),
        ({"activation": "tanh"}, "activation"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "log_cpb", **options})
