"""Rows and columns of a text written in rows of equal length: two learned tables, added."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, built, table, with_parameters
from hypothesis import given
from hypothesis import strategies as st

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused


def numbered(rows: int = 4, columns: int = 4, length: int = 16) -> PositionEncoding:
    """Row r holds 100 r and column c holds c, so that id 4 r + c shows 100 r + c."""
    encoding = built({"name": "factored", "stride": columns}, train_length=length, max_position=length)
    values = [torch.arange(count, dtype=torch.float64)[:, None] for count in (rows, columns)]
    return with_parameters(encoding, rows=100 * values[0], columns=values[1])


def test_ids_are_split_into_row_and_column() -> None:
    assert table(numbered(), [0, 1, 3, 4, 7, 13, 15])[:, 9].tolist() == [0, 1, 3, 100, 103, 301, 303]


@given(length=st.integers(1, 300), stride=st.integers(1, 40), data=st.data())
def test_both_tables_hold_all_ids_of_training_and_no_row_more(length: int, stride: int, data: st.DataObject) -> None:
    encoding = built({"name": "factored", "stride": stride}, train_length=length, max_position=length)
    rows, columns = (encoding.get_parameter(name).detach() for name in ("rows", "columns"))
    p = data.draw(st.integers(0, length - 1))
    row, column = divmod(p, stride)
    assert torch.equal(table(encoding, [p])[0], rows[row] + columns[column])
    last = divmod(length - 1, stride)
    assert len(rows) == last[0] + 1
    assert len(columns) == min(length, stride)


@pytest.mark.parametrize(("length", "stride"), [(128, 12), (16, 4), (17, 5), (1, 1), (2, 2), (1024, 32), (1025, 33)])
def test_the_default_stride_is_the_square_root_rounded_up(length: int, stride: int) -> None:
    encoding = built("factored", train_length=length, max_position=length)
    assert len(encoding.get_parameter("columns")) == stride == math.ceil(math.sqrt(length))
    assert len(encoding.get_parameter("rows")) == math.ceil(length / stride)


def test_ids_between_lie_on_the_line_also_from_a_row_to_the_next() -> None:
    assert table(numbered(), [0.25, 3.5, 7.75, 14.5])[:, 0].tolist() == [0.25, 51.5, 175.75, 302.5]


@pytest.mark.parametrize("beyond", [20, 19.5, 4095, -1])
def test_beyond_the_last_row_is_an_error_that_names_both(beyond: float) -> None:
    """17 ids in rows of 4 have 5 rows: the last row ends with id 19, and its parts are all trained."""
    encoding = numbered(rows=5, length=17)
    assert table(encoding, [19])[0, 0].item() == 403
    with pytest.raises(PositionRangeError, match=rf"5 rows of 4, for the ids 0 to 19; .* id {beyond}$"):
        table(encoding, [0, beyond])


def test_the_table_is_of_rank_one_in_differences() -> None:
    """What one step to the right adds is the same in every row."""
    steps = table(built("factored"), torch.arange(16)).unflatten(0, (4, 4)).diff(dim=1)
    torch.testing.assert_close(steps, steps[:1].expand_as(steps))


def test_each_row_of_a_batch_has_its_own_ids() -> None:
    ids = torch.tensor([[0.0, 1], [5, 9]])
    found = numbered().embed(torch.ones(2, 2, 32, dtype=torch.float64), type(at([0]))(ids))
    assert found[..., 0].tolist() == [[1, 2], [102, 202]]


def test_initial_values_are_the_papers() -> None:
    encoding = built("factored", train_length=4096, max_position=4096, d_model=128)
    for name in ("rows", "columns"):
        std = encoding.get_parameter(name).std().item()
        assert std == pytest.approx(0.125 / math.sqrt(2 * 128), rel=0.05)
    wider = built({"name": "factored", "init_std": 0.5}, train_length=4096, max_position=4096)
    assert wider.get_parameter("rows").std().item() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(("name", "ids"), [("repeat_last", [15, 15, 15]), ("wrap", [0, 1, 8])])
def test_strategies_repeat_trained_ids(name: str, ids: list[int]) -> None:
    encoding = numbered()
    longer = strategies.apply(name, encoding, 16, 25)
    positions = longer.positions(torch.zeros(1, 25, dtype=torch.long))
    found = longer.embed(torch.zeros(1, 25, 32, dtype=torch.float64), positions)[0]
    assert torch.equal(found[[16, 17, 24]], table(encoding, ids))
    assert torch.equal(found[:16], table(encoding, range(16)))


def test_interpolate_takes_lines_between_trained_ids() -> None:
    longer = strategies.apply("interpolate", numbered(), 16, 31)
    positions = longer.positions(torch.zeros(1, 31, dtype=torch.long))
    found = longer.embed(torch.zeros(1, 31, 32, dtype=torch.float64), positions)[0, :, 0]
    assert found[:9].tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 51.5, 100]
    assert found[-1].item() == 303


def test_ids_of_a_sampler_size_the_tables() -> None:
    encoding = built("factored", train_length=16, max_position=50)
    assert encoding.trained_length(16) == 50
    assert len(encoding.get_parameter("rows")) == 13
    with pytest.raises(StrategyRefused, match="factored"):
        strategies.apply("rerope", encoding, 16, 51)


def test_rows_and_columns_are_shown() -> None:
    for ids, rows, columns in (
        ([0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1]),
        ([0, 7, 7, 3], [0, 1, 1, 0], [0, 3, 3, 3]),
    ):
        numbers = built("factored").numbers_at(at(ids))
        assert (numbers["row_of_id"].tolist(), numbers["column_of_id"].tolist()) == (rows, columns)
    assert built("factored").numbers_at(at([0, 0.5, 1])) == {}, "it is of two rows or columns"


@pytest.mark.parametrize("option", [{"stride": 0}, {"stride": 2.5}, {"init_std": -1}, {"strides": 4}])
def test_options_that_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"encoding\." + next(iter(option))):
        built({"name": "factored", **option})
