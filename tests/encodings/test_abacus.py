"""Abacus: places of digits in their numbers, moved by one random offset for each batch of training."""

from __future__ import annotations

import re

import pytest
import torch
from driving import built, table, with_parameters
from hypothesis import given
from hypothesis import strategies as st
from strategy_cases import BY_IDS

from pe_cli import strategies
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused
from pe_cli.model import new_model

ALPHABET = " +0123456789abcdef"
texts = st.text(ALPHABET, min_size=1, max_size=40)


def abacus(**options: object) -> PositionEncoding:
    return built({"name": "abacus", **options}, alphabet=ALPHABET)


def encoded(text: str) -> torch.Tensor:
    return torch.tensor([[ALPHABET.index(character) for character in text]])


def ids(text: str, **options: object) -> list[int]:
    return [int(place) for place in abacus(**options).positions(encoded(text)).ids[0].tolist()]


def by_matching(text: str, digits: str = "0-9") -> list[int]:
    places = [0] * len(text)
    for run in re.finditer(f"[{digits}]+", text):
        places[run.start() : run.end()] = range(1, len(run.group()) + 1)
    return places


def test_places_in_a_sum() -> None:
    assert ids("12+345 = 753 0".replace("=", "+")) == [1, 2, 0, 1, 2, 3, 0, 0, 0, 1, 2, 3, 0, 1]


@given(texts)
def test_ids_against_a_pattern(text: str) -> None:
    assert ids(text) == by_matching(text)
    assert ids(text, digits="0123456789abcdef") == by_matching(text, "0-9a-f")


@given(texts, texts)
def test_ids_do_not_depend_on_what_follows(start: str, rest: str) -> None:
    assert ids(start + rest)[: len(start)] == ids(start)


def test_an_alphabet_without_digits() -> None:
    encoding = built("abacus", alphabet="ab")
    assert not encoding.positions(torch.tensor([[0, 1, 1]])).ids.any()


# ---- training


def drawn(encoding: PositionEncoding, seed: int) -> torch.Tensor:
    tokens = torch.cat((encoded("a12+3 "), encoded("4567++")))
    return encoding.positions(tokens, torch.Generator().manual_seed(seed)).ids


def test_training_moves_all_digits_of_a_batch_by_one_number() -> None:
    places = torch.tensor([[0, 1, 2, 0, 1, 0], [1, 2, 3, 4, 0, 0]])
    seen = set()
    for seed in range(200):
        found = drawn(abacus(max_offset=4), seed)
        offset = int(found[0, 1]) - 1
        assert torch.equal(found, (places + offset * (places > 0)).float())
        seen.add(offset)
    assert seen == {0, 1, 2, 3, 4}


def test_the_generator_decides_and_evaluation_has_no_offset() -> None:
    assert torch.equal(drawn(abacus(), 3), drawn(abacus(), 3))
    assert any(not torch.equal(drawn(abacus(), 3), drawn(abacus(), seed)) for seed in range(4, 8))
    assert torch.equal(drawn(abacus(max_offset=0), 3)[0], torch.tensor([0.0, 1, 2, 0, 1, 0]))


def test_the_model_hands_its_generator_on_in_training_only() -> None:
    spec = ModelSpec(16, 4, 2, 16, ALPHABET, 16)
    model, tokens = new_model(spec, {"name": "abacus", "init_std": 1.0}, seed=1), encoded("12+345+678")
    first, second = (model(tokens, torch.Generator().manual_seed(seed)) for seed in (1, 2))
    assert not torch.equal(first, second)
    assert torch.equal(model(tokens), model(tokens))
    mixed = new_model(spec, {"name": "mix", "parts": [{"name": "abacus", "init_std": 1.0}, "rope"]}, seed=1)
    assert not torch.equal(mixed(tokens, torch.Generator().manual_seed(1)), mixed(tokens))


def test_training_on_the_longest_number_trains_every_row() -> None:
    encoding = abacus(longest=3, max_offset=4)
    for seed in range(60):
        positions = encoding.positions(encoded("123+4 "), torch.Generator().manual_seed(seed))
        encoding.embed(torch.zeros(1, 6, 32, dtype=torch.float64), positions).sum().backward()
    gradient = encoding.get_parameter("table").grad
    assert gradient is not None
    assert len(gradient) == 8
    assert gradient.abs().sum(dim=1).gt(0).all()


# ---- the table


def test_other_characters_have_the_row_zero() -> None:
    encoding = abacus()
    rows = torch.arange(len(encoding.get_parameter("table")), dtype=torch.float64)
    with_parameters(encoding, table=7 + rows[:, None])
    found = encoding.embed(torch.zeros(1, 5, 32, dtype=torch.float64), encoding.positions(encoded("a42 9")))
    assert found[0, :, 3].tolist() == [7, 8, 9, 7, 8]


@pytest.mark.parametrize(("options", "rows"), [({}, 1 + 16 + 99), ({"max_offset": 0}, 17), ({"longest": 5}, 105)])
def test_a_window_of_digits_with_the_largest_offset_has_its_rows(options: dict[str, int], rows: int) -> None:
    encoding = abacus(**options)
    assert len(encoding.get_parameter("table")) == rows
    assert table(encoding, [rows - 1]).isfinite().all()


def test_longer_numbers_than_the_table_are_an_error_that_names_both() -> None:
    encoding = abacus(longest=3, max_offset=2)
    x = torch.zeros(1, 7, 32, dtype=torch.float64)
    assert encoding.embed(x, encoding.positions(encoded("12345 1"))).isfinite().all()
    with pytest.raises(PositionRangeError, match=r"abacus table has 6 rows, for the ids 0 to 5; .* id 6"):
        encoding.embed(x, encoding.positions(encoded("123456 ")))


def test_init_std() -> None:
    assert abacus(longest=2000).get_parameter("table").std().item() == pytest.approx(0.02, rel=0.03)
    assert abacus(init_std=1.0).get_parameter("table").std().item() == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("name", BY_IDS)
def test_strategies_that_change_ids_are_refused(name: str) -> None:
    with pytest.raises(StrategyRefused, match=f"{name} has no meaning for abacus: its ids are read from the"):
        strategies.apply(name, abacus(), 16, 32)


@pytest.mark.parametrize(
    "option", [{"digits": ""}, {"max_offset": -1}, {"longest": 0}, {"init_std": -1}, {"max_offset": 2.5}, {"rows": 9}]
)
def test_options_that_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"encoding\." + next(iter(option))):
        abacus(**option)
