"""passkey: instances by hand, and keys found."""

from __future__ import annotations

from random import Random

import pytest
from task_cases import instances, task

from pe_cli.errors import ConfigError
from pe_cli.instances import load_task
from pe_cli.tasks import build, canonical_data

SHORT = {"statement": "key ", "filler": "abc ", "key_length": 2, "min_length": 13, "max_length": 20}


def test_instances_by_hand() -> None:
    made = next(made for made in instances("passkey", 20, **SHORT) if made.depth == 0.5)
    key = made.answer
    assert made.prompt == f"abc key {key}. abckey "
    first = next(made for made in instances("passkey", 20, **SHORT) if made.depth == 0)
    assert first.prompt.startswith(f"key {first.answer}. abc ")


@pytest.mark.parametrize("length", [48, 128, 500])
def test_the_key_stands_once_and_the_decoy_never(length: int) -> None:
    for made in instances("passkey", length):
        assert len(made.text) == length + 1
        assert made.prompt.count(f"the key is {made.answer}. ") == 1
        assert made.prompt.endswith("the key is ")
        assert made.decoy is not None
        assert len(made.decoy) == len(made.answer) == 5
        assert made.decoy not in made.prompt
        assert made.decoy != made.answer


def test_a_decoy_differs_even_where_the_text_has_every_key() -> None:
    options = {"statement": "0", "filler": "0123456789", "key_length": 1, "min_length": 20, "max_length": 60}
    assert all(made.decoy != made.answer for made in instances("passkey", 60, **options))


def test_depths_are_where_they_say() -> None:
    for made in instances("passkey", 400):
        start = made.prompt.index("the key is ")
        assert made.depth is not None
        assert abs(start / (400 - 33) - made.depth) < 0.01
    assert {made.depth for made in instances("passkey", 400)} == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_a_run_of_another_alphabet_gets_keys_of_its_own_letters() -> None:
    block = canonical_data("task:passkey")
    assert isinstance(block, dict)
    alphabet = "".join(sorted(set("the quick brown fox jumps over lazy dogs. \n")))
    made = build(block, alphabet).instance(200, Random(1))
    assert set(made.answer) <= set("abcdefghijklmnopqrstuvwxyz")
    assert load_task(block, alphabet).alphabet == alphabet
    assert set(build(block, alphabet + "0123456789").instance(200, Random(1)).answer) <= set("0123456789")
    with pytest.raises(ConfigError, match="has not two letters"):
        build(block, " a.")


def test_lengths_that_cannot_hold_a_key_are_refused() -> None:
    with pytest.raises(ConfigError, match="min_length: 12 is none that passkey has: 12 characters cannot hold"):
        task("passkey", **{**SHORT, "min_length": 12})
    assert len(task("passkey", **SHORT).instance(13, Random(0)).text) == 14
