"""parity: instances by hand, and answers recomputed."""

from __future__ import annotations

from task_cases import Scripted, instances, task


def test_instances_by_hand() -> None:
    made = task("parity").instance(5, Scripted("10110"))
    assert (made.prompt, made.answer) == ("10110=", "1")
    assert task("parity").instance(2, Scripted("11")).answer == "0"


def test_answers_flip_with_every_one() -> None:
    for made in instances("parity", 40):
        odd = False
        for bit in made.prompt[:-1]:
            odd ^= bit == "1"
        assert made.answer == ("1" if odd else "0")


def test_chance_and_all_bits_but_one_are_right_in_half_of_the_instances() -> None:
    made = instances("parity", 20, 2000)
    assert abs(sum(one.answer == "1" for one in made) / 2000 - 0.5) < 0.05
    guesses = [str(one.prompt[1:-1].count("1") % 2) for one in made]
    assert abs(sum(guess == one.answer for guess, one in zip(guesses, made, strict=True)) / 2000 - 0.5) < 0.05
