"""The learned table: a row for each id of training, a line between rows, nothing beyond the last."""

from __future__ import annotations

import pytest
import torch
from driving import at, built, table, with_parameters
from hypothesis import given
from hypothesis import strategies as st

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import PositionRangeError


def squares(rows: int = 16) -> PositionEncoding:
    """Row p of the table holds p² in every column."""
    values = torch.arange(rows, dtype=torch.float64)[:, None] ** 2
    return with_parameters(built("learned", max_position=rows), table=values)


def test_whole_ids_take_their_rows() -> None:
    assert table(squares(), [0, 3, 3, 15])[:, 5].tolist() == [0, 9, 9, 225]


@given(p=st.floats(0, 15, width=32))
def test_other_ids_lie_on_the_line_between(p: float) -> None:
    below = int(p)
    expected = below**2 + (p - below) * (2 * below + 1)
    assert table(squares(), [p])[0, 0].item() == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_rows_are_those_of_the_sampler_and_not_of_the_training_length() -> None:
    encoding = built("learned", max_position=40)
    assert encoding.get_parameter("table").shape == (40, 32)
    assert encoding.trained_length(16) == 40


@pytest.mark.parametrize("beyond", [16, 15.25, 4095, -1])
def test_beyond_the_table_is_an_error_that_names_both(beyond: float) -> None:
    with pytest.raises(PositionRangeError, match=rf"16 rows.* 0 to 15; .* id {beyond}$"):
        table(squares(), [0, beyond])


def test_init_std() -> None:
    rows = built({"name": "learned", "init_std": 0.5}, max_position=500).get_parameter("table")
    assert rows.std().item() == pytest.approx(0.5, rel=0.03)
    assert built("learned", max_position=500).get_parameter("table").std().item() == pytest.approx(0.02, rel=0.03)


def test_a_fractional_id_trains_both_rows() -> None:
    encoding = built("learned")
    table(encoding, [2.25]).sum().backward()
    gradient = encoding.get_parameter("table").grad
    assert gradient is not None
    assert gradient[:, 0].nonzero().flatten().tolist() == [2, 3]
    assert gradient[2:4, 0].tolist() == [0.75, 0.25]


def test_each_row_of_a_batch_has_its_own_ids() -> None:
    ids = torch.tensor([[0.0, 1], [4, 9]])
    x = torch.zeros(2, 2, 32, dtype=torch.float64)
    both = squares().embed(x, type(at([0]))(ids))
    assert both[..., 0].tolist() == [[0, 1], [16, 81]]
