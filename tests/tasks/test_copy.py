"""copy: instances by hand, and answers recomputed."""

from __future__ import annotations

from task_cases import Scripted, instances, task


def test_an_instance_by_hand() -> None:
    made = task("copy").instance(4, Scripted("cabb"))
    assert (made.prompt, made.answer, made.scored) == ("cabb>", "cabb", (5, 6, 7, 8))


def test_answers_repeat_their_prompt() -> None:
    for made in instances("copy", 30):
        assert made.answer + ">" == made.prompt
    assert len({made.text for made in instances("copy", 30)}) == 50
    assert set("".join(made.answer for made in instances("copy", 30))) == set("abcdefghij")
