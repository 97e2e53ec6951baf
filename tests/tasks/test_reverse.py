"""reverse: instances by hand, and answers recomputed."""

from __future__ import annotations

from task_cases import Scripted, instances, task


def test_an_instance_by_hand() -> None:
    made = task("reverse").instance(4, Scripted("cabb"))
    assert (made.prompt, made.answer) == ("cabb<", "bbac")


def test_answers_go_backwards() -> None:
    for made in instances("reverse", 17):
        for place, letter in enumerate(made.answer):
            assert letter == made.prompt[16 - place]
