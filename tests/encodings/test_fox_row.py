"""Forget gates by row: sums of gates between query and key that each query computes for itself."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from driving import at, bias, block_of, built, logits, output, random_layer, with_parameters

from pe_cli.encodings.views import LayerView, Positions
from pe_cli.errors import ConfigError


@pytest.mark.parametrize("index", [0, 1])
@torch.no_grad()
def test_the_bias_is_the_sum_of_log_gates_from_the_key_to_before_the_query(index: int) -> None:
    layer, encoding = random_layer(7, index=index), built({"name": "fox_row", "width": 3})
    ours = bias(encoding, layer)
    query, key = (encoding.get_parameter(name)[index, 6:9] for name in ("query", "key"))  # of head 2
    for i in range(7):
        looking = query @ layer.x[1, i]
        gates = [-math.log1p(math.exp(-(looking @ (key @ x)).item() / math.sqrt(3))) for x in layer.x[1]]
        for j in range(i + 1):
            assert ours[1, 2, i, j].item() == pytest.approx(sum(gates[j:i]), abs=1e-12)


@torch.no_grad()
def test_without_content_each_step_halves_the_weight() -> None:
    encoding = with_parameters(built("fox_row"), key=torch.zeros(1))
    row = bias(encoding, random_layer(5))[0, 0, 4].exp()
    assert row.tolist() == pytest.approx([1 / 16, 1 / 8, 1 / 4, 1 / 2, 1])


@torch.no_grad()
def test_two_queries_disagree_about_the_same_characters() -> None:
    """With gates that do not depend on the query, rows differ by a constant; here they do not."""
    ours = bias(built("fox_row"), random_layer(6))[0, 0]
    difference = ours[5, :4] - ours[4, :4]
    assert (difference - difference[0]).abs().max() > 0.1


@torch.no_grad()
def test_near_keys_are_exact_in_a_long_text() -> None:
    """The logarithms sum to −2839 over 4096 characters; those near the query must not feel it."""
    encoding = with_parameters(built("fox_row", torch.float32, n_heads=1, d_model=2), key=torch.zeros(1))
    nothing = torch.zeros(1, 1, 4096, 2)
    layer = LayerView(0, nothing[0] + 1, nothing, nothing, Positions.sequential(4096))
    row = encoding.dense_bias(block_of(encoding, layer, slice(4095, 4096)))
    assert row is not None
    assert row[0, 0, 0, -11:].tolist() == pytest.approx([n * math.log(0.5) for n in range(10, -1, -1)], abs=1e-6)


@torch.no_grad()
def test_blocks_of_queries_and_keys_are_cut_from_the_whole() -> None:
    layer, v, encoding = random_layer(9), random_layer(9, seed=1).k, built("fox_row")
    torch.testing.assert_close(output(encoding, layer, v, slice(4, 7)), output(encoding, layer, v)[:, :, 4:7])
    block, keys = block_of(encoding, layer), torch.tensor([0, 3, 8])
    some, whole = encoding.dense_bias(replace(block, keys=keys, k=block.k[:, :, keys])), encoding.dense_bias(block)
    assert some is not None
    assert whole is not None
    torch.testing.assert_close(some, whole[..., keys])


@torch.no_grad()
def test_neither_ids_nor_queries_and_keys_of_the_layer_are_looked_at() -> None:
    layer, encoding = random_layer(6), built("fox_row")
    assert torch.equal(logits(encoding, layer), logits(encoding, layer.at(at([3, 1, 1, 0, 9.5, 400]))))
    other = replace(layer, q=layer.k, k=layer.q)
    assert torch.equal(bias(encoding, other), bias(encoding, layer))


def test_sizes() -> None:
    shapes = {name: tuple(value.shape) for name, value in built("fox_row", n_layers=3).state_dict().items()}
    assert shapes == {"query": (3, 32, 32), "key": (3, 32, 32)}


@pytest.mark.parametrize("width", [0, 2.5])
def test_options_that_are_refused(width: float) -> None:
    with pytest.raises(ConfigError, match="width"):
        built({"name": "fox_row", "width": width})
