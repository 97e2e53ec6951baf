"""Lines and columns of a text: both read from the characters, half of the table for each."""

from __future__ import annotations

import pytest
import torch
from driving import built, table
from hypothesis import given
from hypothesis import strategies as st
from strategy_cases import BY_IDS

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.errors import ConfigError, StrategyRefused

ALPHABET = "\n abc"
texts = st.text(ALPHABET, min_size=1, max_size=40)


def page(d_model: int = 32, n_heads: int = 4) -> PositionEncoding:
    return built("line_column", alphabet=ALPHABET, d_model=d_model, n_heads=n_heads)


def ids(text: str) -> list[list[int]]:
    """(line, column) of each character."""
    tokens = torch.tensor([[ALPHABET.index(character) for character in text]])
    return [[int(number) for number in pair] for pair in page().positions(tokens).ids[0].tolist()]


def test_a_newline_belongs_to_the_line_that_it_ends() -> None:
    assert ids("ab\nc\n\na") == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [3, 0]]


@given(texts)
def test_ids_against_splitting_into_lines(text: str) -> None:
    lines = text.split("\n")
    expected = [[row, column] for row, line in enumerate(lines) for column in range(len(line) + 1)]
    assert ids(text) == expected[:-1]


@given(texts, texts)
def test_ids_do_not_depend_on_what_follows(start: str, rest: str) -> None:
    assert ids(start + rest)[: len(start)] == ids(start)


def test_each_row_of_a_batch_is_read_by_itself() -> None:
    tokens = torch.tensor([[2, 0, 3], [0, 2, 3]])
    assert page().positions(tokens).ids.tolist() == [[[0, 0], [0, 1], [1, 0]], [[0, 0], [1, 0], [1, 1]]]


@pytest.mark.parametrize("width", [2, 3, 7, 32, 33])
@pytest.mark.parametrize(("line", "column"), [(0, 0), (3, 0), (0, 5), (41, 4000)])
def test_each_half_is_a_table_of_sines_of_its_own_width(width: int, line: int, column: int) -> None:
    positions = Positions(torch.tensor([[[line, column]]], dtype=torch.float32))
    found = page(d_model=width, n_heads=1).embed(torch.zeros(1, 1, width, dtype=torch.float64), positions)[0, 0]
    halves = [
        table(built("sinusoidal", d_model=size, n_heads=1), [number])[0]
        for size, number in ((width // 2, line), (width - width // 2, column))
    ]
    torch.testing.assert_close(found, torch.cat(halves), atol=0, rtol=0)


def test_line_and_column_are_not_mistaken_for_each_other() -> None:
    """As they would be if both tables had all columns and were summed."""
    pairs = torch.cartesian_prod(torch.arange(20.0), torch.arange(20.0))[None]
    rows = page().embed(torch.zeros(1, 400, 32, dtype=torch.float64), Positions(pairs))[0]
    distance = torch.cdist(rows, rows) + 10 * torch.eye(400)
    assert distance.min() > 0.1


def test_without_newlines_columns_count_all_characters() -> None:
    encoding = built("line_column", alphabet="ab")
    assert encoding.positions(torch.tensor([[0, 1, 0]])).ids.tolist() == [[[0, 0], [0, 1], [0, 2]]]


def test_scale_and_base() -> None:
    encoding = built({"name": "line_column", "base": 16, "scale": 0.5}, d_model=8, n_heads=1)
    positions = Positions(torch.tensor([[[2.0, 0.0]]]))
    found = encoding.embed(torch.zeros(1, 1, 8, dtype=torch.float64), positions)[0, 0]
    waves = torch.tensor([2, 0.5], dtype=torch.float64)
    expected = torch.stack((waves.sin(), waves.cos()), dim=-1).flatten() / 2
    torch.testing.assert_close(found, torch.cat((expected, torch.tensor([0, 0.5, 0, 0.5], dtype=torch.float64))))


def test_wavelengths_of_both_axes() -> None:
    numbers = page(d_model=7, n_heads=1).numbers(1)
    assert {key: len(value) for key, value in numbers.items()} == {"line.wavelengths": 2, "column.wavelengths": 2}


@pytest.mark.parametrize("name", BY_IDS)
def test_strategies_that_change_ids_are_refused(name: str) -> None:
    with pytest.raises(StrategyRefused, match=f"{name} has no meaning for line_column: its ids are read from"):
        strategies.apply(name, page(), 16, 32)


@pytest.mark.parametrize("option", [{"base": 0.5}, {"scale": 0}, {"separator": "."}])
def test_options_that_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"encoding\." + next(iter(option))):
        built({"name": "line_column", **option})


def test_one_column_cannot_hold_two_numbers() -> None:
    with pytest.raises(ConfigError, match=r"one column each; model\.d_model: 2 would do"):
        page(d_model=1, n_heads=1)
