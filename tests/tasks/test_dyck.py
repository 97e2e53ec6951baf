"""dyck: instances by hand, and brackets cancelled."""

from __future__ import annotations

import pytest
from task_cases import Scripted, instances, task

from pe_cli.tasks.dyck import left_open


def test_an_instance_by_hand() -> None:
    made = task("dyck", depth=2).instance(4, Scripted("(", 0.9, "[", "("))
    assert (made.prompt, made.answer) == ("()[(=", ")]")


def cancelled(text: str) -> str:
    """What is left when neighbours that match are struck out until there are none."""
    for _ in text:
        for pair in ("()", "[]", "{}", "<>"):
            text = text.replace(pair, "")
    return text


@pytest.mark.parametrize(("kinds", "depth"), [(1, 2), (2, 4), (4, 9)])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 41])
def test_the_answer_closes_everything(kinds: int, depth: int, length: int) -> None:
    for made in instances("dyck", length, kinds=kinds, depth=depth):
        brackets = made.prompt[:-1]
        assert cancelled(brackets + made.answer) == ""
        assert len(cancelled(brackets)) == len(made.answer) == left_open(length, depth)
        heights = [sum(1 if b in "([{<" else -1 for b in brackets[:end]) for end in range(1, length + 1)]
        assert max(heights) <= depth
        assert min(heights) >= 0


def test_how_many_stay_open() -> None:
    assert [left_open(length, 2) for length in range(1, 6)] == [1, 2, 1, 2, 1]
    assert [left_open(length, 4) for length in range(1, 8)] == [1, 2, 3, 4, 3, 4, 3]


@pytest.mark.parametrize("length", [20, 40, 80])
def test_what_closing_the_last_that_open_gets(length: int) -> None:
    """A rule that matches nothing: the answers and characters that the class says of it."""
    closing = dict(zip("([{<", ")]}>", strict=True))
    made = instances("dyck", length, 4000)
    guesses = ["".join(closing[b] for b in one.prompt if b in closing)[-len(one.answer) :][::-1] for one in made]
    assert {one.prompt[-2] in closing for one in made} == {True}
    assert abs(sum(guess == one.answer for guess, one in zip(guesses, made, strict=True)) / 4000 - 0.47) < 0.03
    right = sum(
        a == b for guess, one in zip(guesses, made, strict=True) for a, b in zip(guess, one.answer, strict=True)
    )
    assert abs(right / sum(len(one.answer) for one in made) - 0.81) < 0.02


def test_guesses_among_closing_brackets() -> None:
    made = instances("dyck", 21, 2000)
    assert abs(sum(one.answer == ")))" for one in made) / 2000 - 1 / 8) < 0.03
