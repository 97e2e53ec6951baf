import pytest
from longer import at_length, ids_at

from pe_cli.errors import StrategyRefused


def test_ids_go_up_and_down_and_each_end_comes_once() -> None:
    up, down = [0, 1, 2, 3, 4, 5, 6, 7], [6, 5, 4, 3, 2, 1]
    assert ids_at("mirror", 8 + 6 + 8 + 2) == [*up, *down, *up, 6, 5]


def test_it_serves_ids_that_act_in_attention() -> None:
    assert ids_at("mirror", 10, "tupe")[-3:] == [7, 6, 5]


@pytest.mark.parametrize(("name", "why"), [("rope", "it sees only distances"), ("none", "it uses no ids")])
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"mirror has no meaning for {name}: {why}"):
        at_length("mirror", name, 16)
