"""Contextual positions: gates counted from the query back, and rows of a table between which they fall."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from driving import at, bias, block_of, built, layer_of, logits, output, random_layer, with_parameters
from torch import Tensor

from pe_cli.encodings import cope
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError


def drawn(**options: Any) -> PositionEncoding:
    encoding = built({"name": "cope", **options})
    rows = torch.randn(encoding.get_parameter("rows").shape, generator=torch.Generator().manual_seed(1))
    return with_parameters(encoding, rows=rows.double())


def numbered(**options: Any) -> PositionEncoding:
    """Row p holds p / 8 in each of the 8 columns: a query of ones sees p itself."""
    encoding = built({"name": "cope", **options})
    return with_parameters(encoding, rows=torch.arange(len(encoding.get_parameter("rows")[0]))[:, None] / 8)


def gate(q: Tensor, k: Tensor) -> float:
    return 1 / (1 + math.exp(-(q @ k).item() / math.sqrt(len(q))))


@pytest.mark.parametrize(("term", "divisor"), [("plain", 1.0), ("scaled", math.sqrt(8))])
@pytest.mark.parametrize("index", [0, 1])
def test_the_bias_is_the_query_times_the_row_at_the_sum_of_gates(term: str, divisor: float, index: int) -> None:
    layer, encoding = random_layer(7, index=index), drawn(positions=4, term=term)
    ours, rows = bias(encoding, layer), encoding.get_parameter("rows")[index]
    q, k = layer.q[1, 2], layer.k[1, 2]
    for i in range(7):
        for j in range(i + 1):
            place = min(sum(gate(q[i], k[t]) for t in range(j, i + 1)), 3)
            below, above = rows[math.floor(place)], rows[math.ceil(place)]
            between = below + (place - math.floor(place)) * (above - below)
            assert ours[1, 2, i, j].item() == pytest.approx((q[i] @ between).item() / divisor, abs=1e-12)


def test_gates_of_one_half_count_every_second_key() -> None:
    """Keys of zero: p is half the number of keys from the one in question on, and stops at n − 1."""
    ones = torch.ones(4, 6, 8, dtype=torch.float64)
    ours = bias(numbered(positions=3), layer_of(ones, 0 * ones))
    assert ours[0, 0, 5].tolist() == pytest.approx([2, 2, 2, 1.5, 1, 0.5])


def test_open_gates_count_characters_and_closed_ones_nothing() -> None:
    """A gate of 1 makes positions relative, one more than the distance; only one key of three counts here."""
    ones = torch.ones(4, 5, 8, dtype=torch.float64)
    ours = bias(numbered(), layer_of(ones, 50 * ones))
    assert ours[0, 0, 4].tolist() == pytest.approx([5, 4, 3, 2, 1])
    counting = torch.tensor([1.0, -1, -1, 1, -1], dtype=torch.float64)[:, None]
    ours = bias(numbered(), layer_of(ones, 50 * counting * ones))
    assert ours[0, 0, 4].tolist() == pytest.approx([2, 1, 1, 1, 0])


def test_at_the_start_it_does_nothing() -> None:
    assert (block_bias := built("cope").dense_bias(block_of(built("cope"), random_layer(5)))) is not None
    assert not block_bias.any()
    assert built("cope").get_parameter("rows").shape == (2, 64, 8)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("positions", [2, 3, 64])
def test_chunks_of_any_size_give_the_same(size: int, positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few rows, the keys beyond the last one come without a gate."""
    layer, encoding = random_layer(11), drawn(positions=positions)
    whole = logits(encoding, layer)
    monkeypatch.setattr(cope, "CHUNK", size)
    torch.testing.assert_close(logits(encoding, layer), whole)
    v = random_layer(11, seed=1).k
    torch.testing.assert_close(output(encoding, layer, v, slice(4, 9)), output(encoding, layer, v)[:, :, 4:9])


def test_keys_that_a_mask_hides_count_too() -> None:
    layer, encoding = random_layer(9), drawn()
    block = block_of(encoding, layer)
    keys = torch.tensor([0, 3, 8])
    some = encoding.dense_bias(replace(block, keys=keys, k=block.k[:, :, keys]))
    whole = encoding.dense_bias(block)
    assert some is not None
    assert whole is not None
    torch.testing.assert_close(some, whole[..., keys])


def test_near_keys_are_exact_in_a_long_text() -> None:
    """Nearly all of 4096 gates are half open: the sums near the query must not feel the far ones."""
    ones = torch.ones(4, 4096, 8)
    encoding = with_parameters(
        built({"name": "cope", "positions": 4096}, torch.float32), rows=torch.arange(4096.0)[:, None] / 8
    )
    row = encoding.dense_bias(block_of(encoding, layer_of(ones, 0 * ones), slice(4095, 4096)))
    assert row is not None
    assert row[0, 0, 0, -10:].tolist() == pytest.approx([n / 2 for n in range(10, 0, -1)], abs=1e-6)
    assert row[0, 0, 0, 0].item() == pytest.approx(2048)


def test_ids_are_not_looked_at() -> None:
    layer = random_layer(6)
    assert torch.equal(logits(drawn(), layer), logits(drawn(), layer.at(at([3, 1, 1, 0, 9.5, 400]))))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"positions": 1}, r"positions"), ({"term": "both"}, r"term"), ({"positions": 2.5}, r"pos")],
)
def test_options_that_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "cope", **options})
