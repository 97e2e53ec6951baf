"""TUPE: untied correlations of characters and of ids, and what they come to in known limits."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, bias, built, by_pair, layer_of, logits, random_layer, with_parameters
from torch import Tensor

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.errors import ConfigError, PositionRangeError


def correlations(encoding: PositionEncoding, layer: LayerView) -> Tensor:
    """The paper's sum on the embeddings of characters and ids, one query and key at a time; whole ids."""
    table = encoding.get_parameter("table")
    of_query, of_key = encoding.get_parameter("query_weight"), encoding.get_parameter("key_weight")
    ids = layer.positions.ids[0].long().tolist()

    def entry(b: int, h: int, i: int, j: int) -> Tensor:
        by_character = torch.dot(layer.q[b, h, i], layer.k[b, h, j])
        by_id = torch.dot(of_query[h].T @ table[ids[i]], of_key[h].T @ table[ids[j]])
        return (by_character + by_id) / math.sqrt(2 * layer.q.shape[-1])

    return by_pair(layer, entry)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("ids", [range(7), [0, 0, 3, 15, 2, 2, 9]])
def test_logits_are_the_two_correlations(index: int, ids: list[int]) -> None:
    layer = random_layer(7, index=index).at(at(list(ids)))
    torch.testing.assert_close(logits(built("tupe"), layer), correlations(built("tupe"), layer))


def test_a_worked_number() -> None:
    """One head of width 2: P₀ = (1, 2), P₁ = (3, 4), U^Q swaps the columns, U^K leaves them."""
    eye = torch.eye(2, dtype=torch.float64)
    encoding = with_parameters(
        built("tupe", d_model=2, n_heads=1, max_position=2),
        table=torch.tensor([[1.0, 2], [3, 4]], dtype=torch.float64),
        query_weight=eye.flip(0),
        key_weight=eye,
    )
    ones = torch.ones(1, 2, 2, dtype=torch.float64)
    ours = logits(encoding, layer_of(3 * ones, ones))[0, 0, 1]
    assert ours.tolist() == pytest.approx([(6 + 4 + 6) / 2, (6 + 12 + 12) / 2])


def test_without_a_table_logits_are_those_of_characters_over_the_root_of_2d() -> None:
    encoding = with_parameters(built("tupe"), table=torch.zeros(1, dtype=torch.float64))
    layer = random_layer(5)
    ours = logits(encoding, layer)[..., 4, :]
    torch.testing.assert_close(ours, (layer.q[:, :, 4:] @ layer.k.transpose(-2, -1) / 4)[:, :, 0])


def test_embeddings_get_no_term() -> None:
    assert built("tupe").hooks(0) == {"rotate", "prepare", "bias"}


def test_one_table_and_one_pair_of_matrices_serve_all_layers() -> None:
    shapes = {
        name: tuple(value.shape) for name, value in built("tupe", n_layers=3, max_position=40).state_dict().items()
    }
    assert shapes == {"table": (40, 32), "query_weight": (4, 32, 8), "key_weight": (4, 32, 8)}
    first, second = (bias(built("tupe"), random_layer(5, index=index)) for index in (0, 1))
    assert torch.equal(first, second)


def test_at_the_start_id_terms_are_as_large_as_those_of_characters() -> None:
    """q and k of a normalised input and the model's own matrices have entries of √(1/3)."""
    encoding = built("tupe", d_model=128, max_position=128)
    nothing = torch.zeros(4, 128, 32, dtype=torch.float64)
    spread = bias(encoding, layer_of(nothing, nothing))[0].tril().std() * math.sqrt(2)
    assert spread.item() == pytest.approx(math.sqrt(32) / 3 / math.sqrt(64), rel=0.1)


def test_an_id_between_whole_numbers_lies_on_the_line_between_its_rows() -> None:
    encoding, layer = built("tupe"), random_layer(3)
    low, high, between = (bias(encoding, layer.at(at([0, 1, p])))[0, :, 2, :2] for p in (4, 5, 4.25))
    torch.testing.assert_close(between, 0.75 * low + 0.25 * high)


@pytest.mark.parametrize("beyond", [16, 15.25, -1])
def test_beyond_the_table_is_an_error_that_names_both(beyond: float) -> None:
    with pytest.raises(PositionRangeError, match=rf"tupe has 16 rows, for the ids 0 to 15; .* id {beyond}$"):
        bias(built("tupe"), random_layer(2).at(at([0, beyond])))


def test_strategies_work_on_the_rows_of_the_table() -> None:
    encoding = built("tupe", max_position=24)
    assert encoding.trained_length(16) == 24
    tokens = torch.zeros(1, 48, dtype=torch.long)
    for name, last in (("repeat_last", [23, 23]), ("interpolate", [23 * 46 / 47, 23])):
        changed = strategies.apply(name, encoding, 16, 48)
        positions = changed.positions(tokens)
        assert positions.ids[0, -2:].tolist() == pytest.approx(last)
        assert bias(changed, random_layer(48).at(positions))[..., -1, :].isfinite().all()
    assert strategies.apply("interpolate", encoding, 16, 24) is encoding


def test_the_mix_with_a_bias_by_distance_is_tupe_r() -> None:
    """The bias is added as it is, after the division by √(2d)."""
    mixed = built({"name": "mix", "parts": ["tupe", "t5"]})
    layer, own = random_layer(6), at(range(6))
    ours = logits(mixed, layer.at(Positions(own.ids, parts=(own, own))))
    tupe, t5 = mixed.get_submodule("parts.0"), mixed.get_submodule("parts.1")
    assert isinstance(tupe, PositionEncoding)
    by_distance = t5.get_parameter("table")[:6].T.flip(1)  # the last query's, from the first key on
    torch.testing.assert_close(ours[..., 5, :], correlations(tupe, layer)[..., 5, :] + by_distance)


def test_no_second_part_of_a_mix_can_scale_the_queries() -> None:
    with pytest.raises(ConfigError, match="tupe and rope both change 'rotate'"):
        built({"name": "mix", "parts": ["tupe", "rope"]})


def test_bfloat16_queries_leave_the_id_terms_in_float32() -> None:
    layer = random_layer(5)
    half = LayerView(0, layer.x, layer.q.bfloat16(), layer.k.bfloat16(), layer.positions)
    encoding = built("tupe", torch.float32)
    assert bias(encoding, half).dtype == torch.float32
    assert encoding.rotate(half)[0].dtype == torch.bfloat16
