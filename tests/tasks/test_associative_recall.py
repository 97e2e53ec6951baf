"""associative_recall: instances by hand, and answers looked up."""

from __future__ import annotations

import pytest
from task_cases import Scripted, instances, task

from pe_cli.errors import ConfigError


def test_an_instance_by_hand() -> None:
    made = task("associative_recall").instance(3, Scripted([0, 27, 675], "470", 1))
    assert (made.prompt, made.answer) == ("aa4bb7zz0?bb", "7")


def test_answers_are_the_values_of_different_keys() -> None:
    for made in instances("associative_recall", 40, key_letters=2):
        pairs, asked = made.prompt.split("?")
        found = {pairs[start : start + 2]: pairs[start + 2] for start in range(0, len(pairs), 3)}
        assert len(found) == 40
        assert found[asked] == made.answer


def test_there_are_only_so_many_keys() -> None:
    assert task("associative_recall").lacking(676) is None
    assert task("associative_recall").lacking(677) == "677 pairs need as many keys; there are 676 of 2 letters"
    with pytest.raises(ConfigError, match=r"max_length: 27 is none that .* has: 27 pairs"):
        task("associative_recall", key_letters=1, max_length=27)
