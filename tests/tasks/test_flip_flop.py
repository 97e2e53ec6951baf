"""flip_flop: instances by hand, and the memory kept."""

from __future__ import annotations

import pytest
from task_cases import Scripted, instances, task


def test_an_instance_by_hand() -> None:
    made = task("flip_flop").instance(6, Scripted("iriw", "1", "0", "0", "0"))
    assert made.prompt == "w1i0r1i0w0r"
    assert (made.answer, made.also, made.scored) == ("0", (5,), (5, 11))


@pytest.mark.parametrize("distribution", ["in_distribution", "sparse", "dense"])
def test_every_read_gives_the_last_write(distribution: str) -> None:
    for made in instances("flip_flop", 60, distribution=distribution):
        memory, reads = "", []
        for place in range(0, len(made.text), 2):
            instruction, bit = made.text[place : place + 2]  # type: ignore[str-unpack]
            if instruction == "w":
                memory = bit
            elif instruction == "r":
                assert bit == memory
                reads.append(place + 1)
        assert made.text[0] == "w"
        assert made.scored == tuple(reads)


@pytest.mark.parametrize(("distribution", "share"), [("in_distribution", 0.8), ("sparse", 0.98), ("dense", 0.1)])
def test_as_many_instructions_are_ignored_as_in_the_paper(distribution: str, share: float) -> None:
    texts = [made.text[2:-2] for made in instances("flip_flop", 512, distribution=distribution)]
    assert abs(sum(text.count("i") for text in texts) / (50 * 510) - share) < 0.01
    assert abs(sum(text.count("r") for text in texts) / (50 * 510) - (1 - share) / 2) < 0.01


@pytest.mark.parametrize(("distribution", "share"), [("in_distribution", 0.6), ("sparse", 0.51), ("dense", 0.95)])
def test_the_bit_before_is_right_as_often_as_stated(distribution: str, share: float) -> None:
    hits = [
        made.text[place] == made.text[place - 2]
        for made in instances("flip_flop", 512, 200, distribution=distribution)
        for place in made.scored
    ]
    assert abs(sum(hits) / len(hits) - share) < 0.06


def test_there_is_always_a_write_before_a_read() -> None:
    assert task("flip_flop").lacking(1) is not None
    assert task("flip_flop").instance(2, Scripted("", "1")).text == "w1r1"


@pytest.mark.parametrize(("length", "share"), [(20, 0.93), (48, 0.85), (200, 0.68)])
def test_the_first_bit_is_right_in_sparse_sequences_as_often_as_stated(length: int, share: float) -> None:
    made = instances("flip_flop", length, 3000, distribution="sparse")
    right = [one.text[place] == one.text[1] for one in made for place in one.scored]
    assert abs(sum(right) / len(right) - share) < 0.02
