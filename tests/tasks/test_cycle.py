"""cycle: instances by hand, and walks walked."""

from __future__ import annotations

import pytest
from task_cases import Scripted, instances, task

from pe_cli.errors import ConfigError


def test_instances_by_hand() -> None:
    made = task("cycle").instance(4, Scripted("-.--"))
    assert (made.prompt, made.answer) == ("-.--=", "2")
    assert task("cycle").instance(6, Scripted("++++++")).answer == "1"
    assert task("cycle", places=3).instance(1, Scripted("-")).answer == "2"


def test_walks_end_where_they_say() -> None:
    ring = ["0", "1", "2", "3", "4"]
    for made in instances("cycle", 33):
        walk = list(ring)
        for step in made.prompt[:-1]:
            walk = walk[1:] + walk[:1] if step == "+" else walk[-1:] + walk[:-1] if step == "-" else walk
        assert made.answer == walk[0]


def test_no_place_is_much_likelier_after_twenty_steps() -> None:
    ends = [made.answer for made in instances("cycle", 20, 2000)]
    assert all(abs(ends.count(place) / 2000 - 0.2) < 0.05 for place in "01234")


def test_more_places_than_digits_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"places: must be less than or equal to 10, not 11 \(of cycle\)"):
        task("cycle", places="11")
