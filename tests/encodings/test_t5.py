"""T5's bias: the buckets of a decoder, one table for all layers."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, bias, built, random_layer, sequential_bias, with_parameters
from hypothesis import given
from hypothesis import strategies as st

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError


def numbered(**options: int) -> PositionEncoding:
    """Row b of the table holds b, so that the bias shows the buckets."""
    encoding = built({"name": "t5", **options})
    rows = torch.arange(len(encoding.get_parameter("table")), dtype=torch.float64)
    return with_parameters(encoding, table=rows[:, None])


def test_buckets_of_the_default() -> None:
    buckets = built("t5").numbers(4097)["buckets"]
    distances = [0, 15, 16, 18, 19, 24, 32, 64, 127, 128, 4096]
    assert buckets[distances].tolist() == [0, 15, 16, 16, 17, 19, 21, 26, 31, 31, 31]


@given(buckets=st.integers(2, 80), more=st.integers(1, 3000), data=st.data())
def test_buckets_follow_the_formula(buckets: int, more: int, data: st.DataObject) -> None:
    exact = buckets // 2
    far = exact + more
    distance = data.draw(st.integers(0, 2 * far))
    ours = built({"name": "t5", "buckets": buckets, "max_distance": far}).numbers(distance + 1)["buckets"][-1]
    if distance < exact:
        assert ours == distance
        return
    step = math.log(distance / exact) / math.log(far / exact) * (buckets - exact)
    if abs(step - round(step)) > 1e-9:
        assert ours == min(buckets - 1, exact + math.floor(step))


@pytest.mark.parametrize(("far", "edges"), [(64, [32]), (256, [32, 64, 128])])
def test_edges_where_the_logarithm_is_a_whole_number(far: int, edges: list[int]) -> None:
    """16 (X / 16)^(m / 16) = n: a logarithm a hair too small would put n into the bucket below."""
    buckets = built({"name": "t5", "max_distance": far}).numbers(257)["buckets"]
    for edge in edges:
        step = 16 * math.log2(edge / 16) / math.log2(far / 16)
        assert buckets[edge] == 16 + round(step)
        assert buckets[edge - 1] == buckets[edge] - 1


def test_the_bias_is_the_row_of_the_bucket_of_query_minus_key() -> None:
    last = sequential_bias(numbered(), 200)[2, -1]
    assert last[[199, 198, 183, 135, 0]].tolist() == [0, 1, 16, 26, 31]


def test_ids_may_jump_and_repeat() -> None:
    ours = bias(numbered(), random_layer(3).at(at([5, 5, 1005])))
    assert ours[0, 0, 2].tolist() == [31, 31, 0]
    assert ours[0, 0, 1, 0].item() == 0


def test_one_table_for_all_layers() -> None:
    encoding = built({"name": "t5", "buckets": 10}, n_layers=6, n_heads=4)
    assert {name: tuple(value.shape) for name, value in encoding.state_dict().items()} == {"table": (10, 4)}


def test_the_bias_is_added_after_the_division_by_the_root_of_d() -> None:
    """All distances in one bucket of value 1 raise every logit by 1, whatever the head size."""
    encoding = with_parameters(built("t5"), table=torch.ones(1, dtype=torch.float64))
    assert sequential_bias(encoding, 4)[0, 3].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_distance": 16}, r"max_distance: must be above 16"),
        ({"buckets": 512}, r"max_distance: must be above 256"),
        ({"buckets": 1}, r"buckets"),
        ({"max_distance": 20.5}, r"max_distance"),
    ],
)
def test_options_that_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "t5", **options})


def test_ids_between_whole_numbers_have_no_bucket() -> None:
    assert not built("t5").fractional
