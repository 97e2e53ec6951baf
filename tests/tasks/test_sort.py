"""sort: instances by hand, and answers recomputed."""

from __future__ import annotations

from itertools import pairwise

from task_cases import Scripted, instances, task


def test_an_instance_by_hand() -> None:
    made = task("sort").instance(5, Scripted("cabba"))
    assert (made.prompt, made.answer) == ("cabba/", "aabbc")


def test_answers_have_the_letters_of_the_prompt_in_order() -> None:
    for made in instances("sort", 25):
        assert all(first <= second for first, second in pairwise(made.answer))
        assert all(made.answer.count(letter) == made.prompt.count(letter) for letter in "abcdefghij")


def test_to_repeat_the_letter_before_is_a_good_guess_by_character() -> None:
    made = instances("sort", 100, 200)
    right = [sum(a == b for a, b in pairwise(one.answer)) / 100 for one in made]
    assert abs(sum(right) / len(right) - (1 - 9 / 100)) < 0.02
