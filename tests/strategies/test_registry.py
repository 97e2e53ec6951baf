import pytest
import torch

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.errors import ConfigError

SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=16, alphabet="ab", max_position=16)


def test_none_stands_first_and_the_others_by_name() -> None:
    assert strategies.names()[0] == "none"
    assert strategies.names()[1:] == sorted(strategies.names()[1:])
    assert {"none", "repeat_last", "wrap", "interpolate", "rerope"} <= set(strategies.names())


def test_every_strategy_states_its_formula_its_source_and_what_it_needs() -> None:
    for strategy in strategies.catalogue():
        assert ".. math::" in (strategy.__doc__ or ""), strategy.name
        assert strategy.summary().endswith(".")
        assert len(strategy.summary()) <= 110
        assert strategy.reference
        assert strategy.needs


def test_names_are_taken_in_any_spelling() -> None:
    encoding = registry.build("sinusoidal", SPEC)
    changed = strategies.apply("Repeat-Last", encoding, 16, 32)
    assert changed.positions(torch.zeros(1, 32, dtype=torch.long)).ids[0, -1] == 15


def test_an_unknown_name_is_refused_with_the_nearest_whatever_the_length() -> None:
    encoding = registry.build("sinusoidal", SPEC)
    for length in (8, 32):
        with pytest.raises(ConfigError, match=r"'interpolat' is not known; did you mean 'interpolate'\?"):
            strategies.apply("interpolat", encoding, 16, length)


def test_up_to_the_training_length_nothing_is_even_refused() -> None:
    alibi = registry.build("alibi", SPEC)
    assert strategies.apply("repeat_last", alibi, 16, 16) is alibi


def test_the_trained_length_of_a_table_is_its_rows() -> None:
    spec = ModelSpec(16, 4, 2, train_length=16, alphabet="ab", max_position=24)
    for block in ("learned", {"name": "mix", "parts": ["learned", "t5"]}):
        encoding = registry.build(block, spec)
        assert strategies.apply("repeat_last", encoding, 16, 24) is encoding
        changed = strategies.apply("repeat_last", encoding, 16, 40)
        ids = changed.positions(torch.zeros(1, 40, dtype=torch.long)).leaves()[0].ids
        assert ids[0, -1] == 23


def test_weights_are_shared_and_the_original_keeps_its_ids() -> None:
    encoding = registry.build("learned", SPEC)
    changed = strategies.apply("wrap", encoding, 16, 32)
    (own,), (shared,) = encoding.parameters(), changed.parameters()
    assert shared is own
    assert encoding.positions(torch.zeros(1, 32, dtype=torch.long)).ids[0, -1] == 31
    assert (changed.name, changed.family) == (encoding.name, encoding.family)
