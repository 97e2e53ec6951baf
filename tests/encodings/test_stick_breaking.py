"""Stick-breaking attention, against the product of the paper; and scores that would break it."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, block_of, built, output, random_layer, weights
from torch import Tensor

from pe_cli.encodings.views import LayerView, Positions


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def test_weights_are_the_product_of_the_paper() -> None:
    layer = random_layer(6)
    ours = weights(built("stick_breaking"), layer)
    for i in range(6):
        beta = [sigmoid((layer.q[1, 2, i] @ layer.k[1, 2, j]).item() / math.sqrt(8)) for j in range(i)]
        for j in range(6):
            left = math.prod(1 - beta[t] for t in range(j + 1, i))
            expected = beta[j] * left if j < i else 0.0
            assert ours[1, 2, i, j].item() == pytest.approx(expected, abs=1e-14)


def test_equal_scores_halve_the_stick() -> None:
    """q·k = 0 breaks each time at one half: 1/2, 1/4, 1/8 from the nearest key on."""
    nothing = torch.zeros(1, 1, 5, 8, dtype=torch.float64)
    layer = LayerView(0, nothing[0], nothing, nothing, Positions.sequential(5))
    ours = weights(built("stick_breaking"), layer)
    assert ours[0, 0, 4].tolist() == pytest.approx([1 / 16, 1 / 8, 1 / 4, 1 / 2, 0])


def test_with_the_own_character_first_the_stick_starts_there() -> None:
    """Half of it for the own key, then a quarter, an eighth; the first character takes half and leaves half."""
    nothing = torch.zeros(1, 1, 5, 8, dtype=torch.float64)
    layer = LayerView(0, nothing[0], nothing, nothing, Positions.sequential(5))
    ours = weights(built({"name": "stick_breaking", "nearest": "own"}), layer)
    assert ours[0, 0, 4].tolist() == pytest.approx([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2])
    assert ours[0, 0, 0].tolist() == pytest.approx([1 / 2, 0, 0, 0, 0])


def test_with_the_own_character_first_the_others_share_what_it_leaves() -> None:
    layer = random_layer(6)
    own, previous = (weights(built({"name": "stick_breaking", "nearest": near}), layer) for near in ("own", "previous"))
    beta = own.diagonal(dim1=-2, dim2=-1)[..., None]
    torch.testing.assert_close(beta[..., 0], sigmoid_of((layer.q * layer.k).sum(dim=-1) / math.sqrt(8)))
    torch.testing.assert_close(own - torch.diag_embed(beta[..., 0]), previous * (1 - beta))


@pytest.mark.parametrize(("remainder", "first"), [(False, 0.0), (True, 1.0)])
def test_the_first_character_has_nothing_but_the_remainder(remainder: bool, first: float) -> None:
    layer = random_layer(1)
    ours = output(built({"name": "stick_breaking", "remainder": remainder}), layer, layer.k)
    assert torch.equal(ours, first * layer.k)


@pytest.mark.parametrize("queries", [slice(0, 9), slice(4, 7)])
def test_with_the_remainder_weights_sum_to_one(queries: slice) -> None:
    layer = random_layer(9)
    encoding = built({"name": "stick_breaking", "remainder": True})
    ones = torch.ones_like(layer.k)
    torch.testing.assert_close(output(encoding, layer, ones, queries), ones[:, :, queries])
    marked = torch.zeros_like(layer.k)
    marked[:, :, 5] = 1  # the query at 5 gets exactly its remainder
    ours = output(encoding, layer, marked, queries)[:, :, 5 - queries.start]
    left = 1 - weights(encoding, layer)[:, :, 5].sum(dim=-1, keepdim=True)
    torch.testing.assert_close(ours, left.expand_as(ours))


@pytest.mark.parametrize("remainder", [False, True])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_output_and_gradients_are_finite_at_any_scores(size: float, remainder: bool) -> None:
    layer = random_layer(12)
    q, k, v = (tensor.float().requires_grad_() for tensor in (size * layer.q, size * layer.k, layer.k))
    encoding = built({"name": "stick_breaking", "remainder": remainder}, torch.float32)
    result = output(encoding, LayerView(0, layer.x, q, k, layer.positions), v)
    result.square().sum().backward()
    assert result.isfinite().all()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in (q, k, v))


def test_near_keys_are_exact_in_a_long_text() -> None:
    """The logarithms sum to −2839 over 4096 keys; the weight of the nearest ones must not feel it."""
    nothing = torch.zeros(1, 1, 4096, 2)
    layer = LayerView(0, nothing[0], nothing, nothing, Positions.sequential(4096))
    encoding = built("stick_breaking", torch.float32)
    block = block_of(encoding, layer, slice(4095, 4096))
    row = encoding.weights(block.scores, block.causal, block)[0, 0, 0]
    assert row[4085:4095].tolist() == pytest.approx([0.5**n for n in range(10, 0, -1)], rel=1e-6)
    assert row[:2000].max() == 0


def test_what_is_masked_takes_nothing() -> None:
    """Without the key in the middle the others share the stick as if it were not there."""
    layer = random_layer(3)
    encoding = built("stick_breaking")
    block = block_of(encoding, layer)
    ours = encoding.weights(block.scores, block.causal & (block.key_index != 1), block)
    beta = sigmoid_of(block.scores[:, :, 2, 0])
    torch.testing.assert_close(ours[:, :, 2, 0], beta)
    assert (ours[:, :, 2, 1] == 0).all()


def sigmoid_of(scores: Tensor) -> Tensor:
    return 1 / (1 + (-scores).exp())


def test_ids_are_not_looked_at() -> None:
    layer = random_layer(4)
    other = layer.at(at([7, 7, 0, 3.5]))
    assert torch.equal(weights(built("stick_breaking"), layer), weights(built("stick_breaking"), other))


def test_values_are_changed_only_by_the_remainder() -> None:
    assert built("stick_breaking").hooks(0) == {"weights"}
    assert built({"name": "stick_breaking", "remainder": True}).hooks(0) == {"weights", "values"}
