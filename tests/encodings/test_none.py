"""No encoding: plain causal attention, blind to ids."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, built, logits, output, random_layer


def test_logits_are_scaled_products() -> None:
    layer = random_layer(5)
    ours = logits(built("none"), layer)
    for i in range(5):
        for j in range(5):
            product = (layer.q[1, 2, i] * layer.k[1, 2, j]).sum().item() / math.sqrt(8)
            assert ours[1, 2, i, j].item() == (pytest.approx(product) if j <= i else -math.inf)


def test_it_has_no_parameters_and_no_hooks() -> None:
    encoding = built("none")
    assert not list(encoding.parameters())
    assert encoding.hooks(0) == frozenset()


def test_ids_do_not_matter() -> None:
    layer = random_layer(6)
    other = layer.at(at([9, 4, 4, 1, 100, 7.5]))
    assert torch.equal(logits(built("none"), layer), logits(built("none"), other))


def test_equal_keys_are_averaged() -> None:
    """The n-th character then sees the mean of n values: what a model can count from."""
    layer = random_layer(4)
    same = layer.k[:, :, :1].expand_as(layer.k)
    v = torch.eye(4, dtype=torch.float64).expand(2, 4, 4, 4)
    ours = output(built("none"), type(layer)(0, layer.x, layer.q, same, layer.positions), v)
    expected = torch.ones(4, 4, dtype=torch.float64).tril() / torch.arange(1, 5)[:, None]
    torch.testing.assert_close(ours, expected.expand_as(ours))
