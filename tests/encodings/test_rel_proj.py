"""The bias by projection, against its sum written out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import at, bias, built, by_pair, random_layer, sequential_bias, with_parameters
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.errors import ConfigError


def rel_proj(basis: int = 3, max_distance: int = 4, **sizes: Any) -> PositionEncoding:
    """Curves of size 1, so that they count."""
    encoding = built({"name": "rel_proj", "basis": basis, "max_distance": max_distance}, **sizes)
    with torch.no_grad():
        encoding.get_parameter("curves").mul_(50)
    return encoding


def written_out_in_full(encoding: PositionEncoding, layer: LayerView, max_distance: int) -> Tensor:
    weight, offset, curves = (encoding.get_parameter(name)[layer.index] for name in ("weight", "offset", "curves"))
    ids = layer.positions.ids[0].long().tolist()

    def entry(b: int, h: int, i: int, j: int) -> Tensor:
        n, total = ids[i] - ids[j], torch.zeros((), dtype=torch.float64)
        for r in range(len(curves) if n < max_distance else 0):
            total = total + (torch.dot(weight[h, r], layer.x[b, i]) + offset[h, r]) * curves[r, n]
        return total

    return by_pair(layer, entry)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("ids", [None, range(9), [0, 0, 1, 5, 6, 6, 40, 41, 44]])
def test_bias_is_the_sum_over_the_curves(index: int, ids: list[int] | None) -> None:
    layer = random_layer(9, index=index)
    layer = layer if ids is None else layer.at(at(list(ids)))
    torch.testing.assert_close(bias(rel_proj(), layer), written_out_in_full(rel_proj(), layer, 4))


def test_the_spacing_of_the_ids_counts() -> None:
    layer = random_layer(6).at(Positions(torch.arange(6, dtype=torch.float32)[None] * 2, step=2.0))
    torch.testing.assert_close(bias(rel_proj(), layer), written_out_in_full(rel_proj(), layer, 4))


def test_from_the_largest_distance_on_there_is_no_bias() -> None:
    row = bias(rel_proj(max_distance=4), random_layer(12))[..., 11, :]
    assert row[..., :8].abs().max() == 0
    assert row[..., 8:].abs().min() > 0


def test_without_weights_it_is_one_curve_for_all_queries() -> None:
    """Offset 1 for the first curve: row i has it from the query back."""
    offset = torch.tensor([1.0, 0, 0], dtype=torch.float64)
    curves = torch.tensor([[8.0, 4, 2, 1]], dtype=torch.float64).expand(3, 4)
    encoding = with_parameters(rel_proj(), weight=torch.zeros(1, dtype=torch.float64), offset=offset, curves=curves)
    assert sequential_bias(encoding, 6)[2, 5].tolist() == [0, 0, 1, 2, 4, 8]


def test_layers_have_their_own_curves_which_heads_share() -> None:
    shapes = {n: tuple(v.shape) for n, v in built("rel_proj", n_layers=3, train_length=20).state_dict().items()}
    assert shapes == {"weight": (3, 4, 16, 32), "offset": (3, 4, 16), "curves": (3, 16, 20)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": 0}, "basis: must be greater than or equal to 1"),
        ({"max_distance": 0}, "max_distance: must be greater than 0"),
        ({"max_distance": 8.5}, "max_distance: must be a whole number"),
    ],
)
def test_options_that_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "rel_proj", **options})


def test_ids_between_whole_numbers_are_on_no_curve() -> None:
    assert not built("rel_proj").fractional
