"""However a strategy and its options are written: refused in short, or called by a name that means the same again."""

from __future__ import annotations

from typing import Any

import mutants
import pytest
from by_example import examples
from hypothesis import given
from hypothesis import strategies as st

from pe_cli import options, strategies
from pe_cli.config import Experiment, resolve, with_evaluation
from pe_cli.errors import ConfigError, comma_parts

OPTIONS = {cls.name: list(cls.Options.model_fields) for cls in strategies.catalogue()}
texts = st.sampled_from(mutants.NUMBERS + mutants.TEXTS + mutants.BLOCKS + mutants.NAMES) | st.text(max_size=20)
numbers = st.integers(-2, 300) | st.floats(0, 100) | st.lists(st.floats(0.5, 9), max_size=4) | st.booleans() | st.none()


@pytest.fixture(scope="module")
def trained() -> Experiment:
    return resolve(None, {"training.length": 16}).experiment


def blocks(name: str) -> st.SearchStrategy[dict[str, Any]]:
    keys = st.sampled_from([*OPTIONS[name], "x"])
    return st.dictionaries(keys, numbers | texts, max_size=2).map(lambda stated: {"name": name, **stated})


@examples(400)
@given(st.sampled_from(sorted(OPTIONS)).flatmap(blocks))
def test_what_a_table_calls_a_strategy_means_the_same(block: dict[str, Any]) -> None:
    try:
        stated = strategies.canonical_block(block)
    except ConfigError:
        return
    called = strategies.label(block)
    assert strategies.canonical_block(called) == stated
    assert comma_parts(called) == [called], "it is one of several that commas separate"
    assert called.isprintable()
    several = strategies.read_entries(f"none, {called}")
    assert len(several) == (1 if stated["name"] == "none" else 2)
    assert strategies.canonical_block(several[-1]) == stated


@examples(150)
@given(st.sampled_from([key for key in mutants.KEYS if key.startswith("evaluation.")]), texts)
def test_any_evaluation_of_a_run(trained: Experiment, key: str, text: str) -> None:
    said = options.settings([f"{key}={text}"])
    try:
        found = with_evaluation(trained, said)
    except ConfigError as refusal:
        message = str(refusal)
    else:
        assert found.model_copy(update={"evaluation": trained.evaluation}) == trained
        return
    assert f"--set {key}=" in message
    assert len(message.splitlines()) <= 15
