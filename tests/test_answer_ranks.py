"""Ranks of runs on a task: by whole answers, on the same instances, whatever the losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from summaries import frames, row

from pe_cli import reports
from pe_cli.collection import Comparison, tables
from pe_cli.summary import summarise

Shown = tuple[float, Sequence[int]]
"""The loss of a run, and how many of eight characters are right in each instance."""


def comparison_of(runs: dict[str, list[Shown]], sizes: Sequence[int] | None = None) -> Comparison:
    """One seed after the other for each name; `sizes` of the answers, eight each unless told."""
    rows, windows = [], []
    for name, seeds in runs.items():
        for seed, (loss, right) in enumerate(seeds):
            scored = np.array(sizes or [8] * len(right))
            exact, accuracy = float(np.mean(scored == right)), float(sum(right) / scored.sum())
            shares = {"exact_match": exact, "accuracy": accuracy, "exact_match_low": exact, "exact_match_high": exact}
            entry = row(name, loss, seed, protocol="instances", **shares)
            rows.append(entry)
            [_, part] = frames([entry], **{name: np.zeros(len(right))})
            windows.append(part.assign(right_chars=list(right), scored_chars=scored))
    all_rows, _ = frames(rows)
    return Comparison([], all_rows, summarise(all_rows, pd.concat(windows), "a"))


def ranks(runs: dict[str, list[Shown]], sizes: Sequence[int] | None = None) -> dict[str, Any]:
    return {entry["name"]: entry["rank"] for entry in reports.records(comparison_of(runs, sizes).summary)}


ALMOST: dict[str, list[Shown]] = {"a": [(1.0, [0] * 20)], "near": [(0.1, [7] * 20)], "half": [(3.0, [8, 0] * 10)]}
"""`near` has the lowest loss and the most characters, `half` the most answers: 10 of 20 against none."""


def test_whole_answers_decide_and_neither_characters_nor_losses() -> None:
    assert ranks(ALMOST) == {"a": 2, "near": 2, "half": 1}


def test_the_table_has_the_most_answers_first_and_then_the_lower_loss() -> None:
    by_length, longest = tables(comparison_of(ALMOST), [])
    assert {entry["run"]: entry["at_64"] for entry in by_length.rows} == {"a": 0.0, "near": 0.0, "half": 0.5}
    found = [(entry["run"], entry["rank"], entry["accuracy"]) for entry in longest.rows]
    assert found == [("half", 1, 0.5), ("near", 2, 0.875), ("a", 2, 0.0)]


def test_runs_of_one_seed_are_compared_instance_by_instance() -> None:
    """Of 40 instances a answers the first 16, and b eight more: clear. c has as many as b, and not those of a."""
    found = ranks({
        "a": [(1.0, [8] * 16 + [5] * 24)],
        "b": [(1.0, [8] * 24 + [5] * 16)],
        "c": [(1.0, [5] * 16 + [8] * 24)],
    })  # fmt: skip
    assert found == {"a": 2, "b": 1, "c": 1}


def test_runs_of_several_seeds_are_compared_seed_by_seed() -> None:
    """b has four more answers of 20 than a at every seed, which differ by as much among themselves; c swings."""
    answers = {"a": (4, 8, 12), "b": (8, 12, 16), "c": (2, 12, 18)}
    runs: dict[str, list[Shown]] = {
        name: [(float(ord(name)), [8] * right + [7] * (20 - right)) for right in own] for name, own in answers.items()
    }
    assert ranks(runs) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("long", [9, 100])
def test_an_answer_counts_once_however_long_it_is(long: int) -> None:
    """a has the ten answers of one character, b the ten long ones."""
    shown: dict[str, list[Shown]] = {"a": [(1.0, [1, 0] * 10)], "b": [(1.0, [0, long] * 10)]}
    assert ranks(shown, [1, long] * 10) == {"a": 1, "b": 1}
