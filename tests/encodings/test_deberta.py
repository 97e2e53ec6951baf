"""Disentangled attention, against the three terms written out with the table's rows taken one at a time."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, bias, built, by_pair, logits, output, random_layer, with_parameters
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.errors import ConfigError

LOG = {"buckets": "log", "clip": 6, "max_distance": 20}


def deberta(clip: int = 3, **options: Any) -> PositionEncoding:
    """A table of size 1, so that it counts."""
    encoding = built({"name": "deberta", "clip": clip, **options})
    with torch.no_grad():
        encoding.get_parameter("table").mul_(50)
    return encoding


def log_bucket(distance: int, buckets: int, far: int) -> int:
    """As the released code has it for distances from 0 on, capped at far − 1 as its first version does."""
    middle, distance = buckets // 2, min(distance, far - 1)
    if distance <= middle:
        return distance
    return middle + math.ceil(math.log(distance / middle) / math.log((far - 1) / middle) * (middle - 1) - 1e-9)


def three_terms(encoding: PositionEncoding, layer: LayerView, clip: int, **options: Any) -> Tensor:
    """The paper's sum with δ(i, j) and δ(j, i), one query and key at a time."""
    p2c = options.get("p2c", "mirrored")
    table: Tensor = encoding.get_parameter("table")
    if p2c != "mirrored":  # the rows of δ < k are not kept
        table = torch.cat((torch.full_like(table, math.nan), table))
    of_key = encoding.get_parameter("key_weight")[layer.index]
    ids = layer.positions.ids[0].long().tolist()

    def delta(difference: int) -> int:
        if options.get("buckets") == "log":
            difference = int(math.copysign(log_bucket(abs(difference), clip, options["max_distance"]), difference))
        return min(max(difference + clip, 0), 2 * clip - 1)

    def entry(b: int, h: int, i: int, j: int) -> Tensor:
        q, k = layer.q[b, h, i], layer.k[b, h, j]
        there, back = delta(ids[i] - ids[j]), delta(ids[j] - ids[i])
        terms = [q @ k, q @ (of_key[h].T @ table[there])]
        if p2c != "off":
            of_query = encoding.get_parameter("query_weight")[layer.index]
            terms.append(k @ (of_query[h].T @ table[back if p2c == "mirrored" else there]))
        return torch.stack(terms).sum() / math.sqrt(len(terms) * layer.q.shape[-1])

    return by_pair(layer, entry)


@pytest.mark.parametrize("ids", [None, range(9), [0, 0, 1, 5, 6, 6, 40, 41, 44]])
@pytest.mark.parametrize("p2c", ["mirrored", "same_row", "off"])
@pytest.mark.parametrize("form", [{"clip": 3}, LOG])
def test_logits_are_the_terms_of_the_paper(form: dict[str, Any], p2c: str, ids: list[int] | None) -> None:
    """With equally spaced ids products are taken by distance, with others they are picked by bucket."""
    layer = random_layer(9, index=1)
    layer = layer if ids is None else layer.at(at(list(ids)))
    encoding = deberta(**form, p2c=p2c)
    torch.testing.assert_close(logits(encoding, layer), three_terms(encoding, layer, **form, p2c=p2c))


def test_the_spacing_of_the_ids_counts() -> None:
    layer = random_layer(6).at(Positions(torch.arange(6, dtype=torch.float32)[None] * 2, step=2.0))
    encoding = deberta(clip=5)
    torch.testing.assert_close(logits(encoding, layer), three_terms(encoding, layer, clip=5))


def test_each_row_of_a_batch_has_its_own_ids() -> None:
    layer, ids = random_layer(5), torch.tensor([[0.0, 1, 2, 3, 4], [0, 7, 9, 9, 30]])
    both = bias(deberta(), layer.at(Positions(ids)))
    for row in range(2):
        torch.testing.assert_close(both[row], bias(deberta(), layer.at(at(ids[row])))[row])


def test_the_two_forms_of_the_last_term_differ_and_agree_at_distance_zero() -> None:
    """δ(i, i) = δ(i, i): the same row for both."""
    layer = random_layer(4)
    mirrored, same = deberta(p2c="mirrored"), deberta(p2c="same_row")
    rows = mirrored.get_parameter("table")[3:]
    with_parameters(same, table=rows, **{n: mirrored.get_parameter(n) for n in ("key_weight", "query_weight")})
    first, second = logits(mirrored, layer), logits(same, layer)
    torch.testing.assert_close(first.diagonal(dim1=-2, dim2=-1), second.diagonal(dim1=-2, dim2=-1))
    assert (first - second)[..., 3, 0].abs().min() > 1e-3


def test_the_rows_of_each_distance() -> None:
    """k = 4: rows 4 to 7 in the first term; 4 down to 0 in the last, which has one distance more of its own."""
    rows = deberta(clip=4).numbers(4097)
    assert rows["query_rows"][[0, 1, 3, 4, 4096]].tolist() == [4, 5, 7, 7, 7]
    assert rows["key_rows"][[0, 1, 3, 4, 4096]].tolist() == [4, 3, 1, 0, 0]
    same = deberta(clip=4, p2c="same_row").numbers(6)
    assert same["query_rows"].tolist() == same["key_rows"].tolist() == [0, 1, 2, 3, 3, 3]
    assert list(deberta(p2c="off").numbers(6)) == ["query_rows"]


@given(buckets=st.integers(2, 60), more=st.integers(2, 800), data=st.data())
def test_log_buckets_follow_the_formula(buckets: int, more: int, data: st.DataObject) -> None:
    far = buckets // 2 + more
    distance = data.draw(st.integers(0, 2 * far))
    row = deberta(clip=buckets, buckets="log", max_distance=far).numbers(distance + 1)["key_rows"][-1]
    assert buckets - row == log_bucket(distance, buckets, far)


def test_a_bucket_begins_after_the_distance_where_the_logarithm_is_a_whole_number() -> None:
    """m = 3, X − 1 = 12: ln(6 / 3) / ln(12 / 3) · 2 is exactly 1, so 6 is the last distance of bucket 4."""
    rows = deberta(clip=6, buckets="log", max_distance=13).numbers(14)["key_rows"]
    assert (6 - rows).tolist() == [0, 1, 2, 3, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5]


def test_one_table_for_all_layers_and_matrices_for_each() -> None:
    def shapes(**options: Any) -> dict[str, tuple[int, ...]]:
        state = built({"name": "deberta", **options}, n_layers=3).state_dict()
        return {name: tuple(value.shape) for name, value in state.items()}

    weights = {"key_weight": (3, 4, 32, 8), "query_weight": (3, 4, 32, 8)}
    assert shapes(clip=5) == {"table": (10, 32), **weights}
    assert shapes(clip=5, p2c="same_row") == {"table": (5, 32), **weights}
    assert shapes(clip=5, p2c="off") == {"table": (5, 32), "key_weight": (3, 4, 32, 8)}
    assert shapes() == {"table": (16, 32), **weights}  # k is half of the training length of 16


def test_every_row_of_the_default_is_met_in_training() -> None:
    encoding = built("deberta")
    layer = random_layer(16)
    output(encoding, layer, layer.k).square().sum().backward()
    gradient = encoding.get_parameter("table").grad
    assert gradient is not None
    assert (gradient.abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize(("p2c", "terms"), [("mirrored", 3), ("same_row", 3), ("off", 2)])
def test_content_is_divided_by_the_root_of_d_times_the_number_of_terms(p2c: str, terms: int) -> None:
    encoding, layer = with_parameters(deberta(p2c=p2c), table=torch.zeros(1, dtype=torch.float64)), random_layer(4)
    expected = (layer.q[:, :, 3:] @ layer.k.transpose(-2, -1)) / math.sqrt(terms * 8)
    torch.testing.assert_close(logits(encoding, layer)[:, :, 3:], expected)


def test_bfloat16_products_with_rows_are_taken_in_float32() -> None:
    layer = random_layer(5)
    half = LayerView(0, layer.x, layer.q.bfloat16(), layer.k.bfloat16(), layer.positions)
    assert bias(built("deberta", torch.float32), half).dtype == torch.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip": 0}, "clip: must be greater than 0"),
        ({"max_distance": 20}, r"max_distance: 20 means nothing to exact buckets"),
        ({"buckets": "log", "clip": 1}, "clip must be at least 2"),
        ({"buckets": "log", "clip": 8, "max_distance": 5}, "max_distance above 5"),
        ({"p2c": "paper"}, "p2c"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "deberta", **options})


def test_ids_between_whole_numbers_have_no_row() -> None:
    assert not built("deberta").fractional
