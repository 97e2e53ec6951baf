"""Samplers from the command line: a training with each, its continuation, and its evaluation."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import info, only_run, pe, signals_at, training
from refusals import refuses
from safetensors.torch import load_file
from small_runs import read_csv

RECIPES: dict[str, dict[str, Any]] = {
    "randomized": {"encoding": "rope", "positions": "{name: randomized, max_position: 64}"},
    "randomized, per example": {"encoding": "learned", "positions": "{name: randomized, per: example}"},
    "shifted": {"encoding": "learned", "positions": "{name: shifted, shifts: 20}"},
    "scaled": {"encoding": "sinusoidal", "positions": "scaled"},
    "skipped": {"encoding": "t5", "positions": "{name: skipped, max_position: 64}"},
}
WITHOUT_A_LOSS: dict[str, dict[tuple[str, int], str]] = {
    "randomized": {("none", 80): "undefined"},
    "randomized, per example": {},
    "shifted": {("none", 64): "undefined", ("none", 80): "undefined"},
    "scaled": {},
    "skipped": {("interpolate", 80): "refused"},
}
"""Of windows of 16 to 80 characters: 64 ids cannot be drawn 80 times, a table of 16 + 19 rows has none for 64 ids, and
t5 knows no ids between whole numbers, which up to 64 are not needed. Whatever else is asked is measured."""
SHORT = {"training__steps": 12, "training__warmup_steps": 2, "training__precision": "float32"}


@pytest.fixture(scope="module")
def randomized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("randomized")
    assert pe(*training(folder, **SHORT, **RECIPES["randomized"])).code == 0
    return only_run(folder)


def rows(run: Path, *arguments: object) -> dict[tuple[str, int], dict[str, Any]]:
    done = pe("extrapolate", run, "--json", *arguments)
    assert done.code == 0, done.err
    return {(row["strategy"], row["length"]): row for row in done.json["rows"]}


@pytest.mark.parametrize("name", RECIPES)
def test_a_training_is_continued_exactly(tmp_path: Path, name: str) -> None:
    recipe = RECIPES[name]
    assert pe(*training(tmp_path / "whole", **SHORT, **recipe)).code == 0
    with signals_at(6, signal.SIGINT):
        assert pe(*training(tmp_path / "parts", **SHORT, **recipe)).code == 130
    assert pe(*training(tmp_path / "parts", "--resume", **SHORT, **recipe)).code == 0
    whole, parts = only_run(tmp_path / "whole"), only_run(tmp_path / "parts")
    for key in ("status", "step", "data_digest", "weight_sha256", "train_loss", "validation_loss"):
        assert info(whole)[key] == info(parts)[key], key
    without = {key: value for key, value in recipe.items() if key != "positions"}
    assert pe(*training(tmp_path / "sequential", **SHORT, **without)).code == 0
    sequential = only_run(tmp_path / "sequential")
    assert info(sequential)["weight_sha256"] != info(whole)["weight_sha256"]
    assert info(sequential)["data_digest"] == info(whole)["data_digest"]
    found = rows(whole, "--lengths", "16,32,64,80", "--strategy", "none,interpolate")
    assert {key: row["status"] for key, row in found.items() if row["status"] != "ok"} == WITHOUT_A_LOSS[name]


def test_shared_weights_start_alike_whatever_the_sampler(tmp_path: Path) -> None:
    found = []
    for name in ("sequential", "randomized", "shifted", "scaled", "skipped"):
        assert pe(*training(tmp_path / name, encoding="rope", positions=name, training__steps=0)).code == 0
        found.append(load_file(only_run(tmp_path / name) / "model.safetensors"))
    first, *others = found
    assert all(torch.equal(tensor, other[key]) for other in others for key, tensor in first.items())


def test_random_ids_of_evaluation_depend_on_nothing_but_the_length(randomized: Path) -> None:
    before = rows(randomized, "--lengths", "16,32,64", "--strategy", "none")
    again = rows(randomized, "--lengths", "64", "--strategy", "none", "--set", "evaluation.batch_size=1")
    assert again["none", 64]["loss"] == pytest.approx(before["none", 64]["loss"], abs=1e-6)
    assert (
        rows(randomized, "--lengths", "32,16", "--strategy", "none")["none", 32]["loss"] == before["none", 32]["loss"]
    )
    assert (before["none", 64]["largest_id"], before["none", 16]["gain"]) == (63, 0)
    table = (randomized / "extrapolation.md").read_text(encoding="utf-8")
    assert "randomized: losses are means over 3 draws from 64 ids: every window of a length meets each of them" in table


def test_a_window_of_more_characters_than_ids_is_undefined(randomized: Path) -> None:
    found = rows(randomized, "--lengths", "64,65", "--strategy", "none,interpolate")
    assert found["none", 64]["loss"] == found["interpolate", 64]["loss"]  # all ids are trained: nothing to extend
    assert found["none", 65]["status"] == "undefined"
    assert "draws from 64 ids, and a window of 65 characters" in found["none", 65]["reason"]
    assert (found["interpolate", 65]["status"], found["interpolate", 65]["largest_id"]) == ("ok", 63)
    assert pe("extrapolate", randomized, "--lengths", "65", "--strategy", "none").code == 2


def test_a_sampler_is_named_in_every_row(randomized: Path) -> None:
    rows(randomized, "--lengths", "16", "--strategy", "none")
    assert {row["positions"] for row in read_csv(randomized / "extrapolation.csv")} == {"randomized"}


def test_text_goes_on_from_random_ids(randomized: Path) -> None:
    sample = ["sample", randomized, "--prompt", "the cat", "--chars"]
    first, second, long = (pe(*sample, count) for count in (20, 20, 60))
    assert first.out == second.out
    assert (first.code, len(first.out)) == (0, len("the cat") + 20 + 1)
    said = "randomized draws from 64 ids, and a window of 65 characters needs as many: from now on the model sees"
    assert (long.code, long.err.count(said), long.err.count("table")) == (0, 1, 0)


def test_ids_of_a_sampler_can_be_inspected() -> None:
    done = pe("inspect", "rope", "--length", "5", "--set", "positions={name: shifted, start: 3}", "--json")
    assert (done.code, done.json["positions"]) == (0, [3, 4, 5, 6, 7])


REFUSALS: dict[str, tuple[str, list[str]]] = {
    "an unknown sampler": ("positions: randomised", ["positions", "did you mean 'randomized'?"]),
    "an unknown option": ("positions: {name: shifted, shift: 3}", [":1: positions.shift", "did you mean 'shifts'?"]),
    "an option of another": (
        "positions: {name: scaled, shifts: 3}",
        [":1: positions.shifts", "it is an option of shifted"],
    ),
    "a choice": ("positions: {name: randomized, per: window}", ["positions.per", "batch, example", "'window'"]),
    "a jitter that swaps characters": ("positions: {name: scaled, max_jitter: 0.6}", ["positions.max_jitter", "0.5"]),
    "a scale below one": ("positions: {name: scaled, max_scale: 0.9}", ["positions.max_scale", "1"]),
    "too few ids": (
        "training: {length: 200}\npositions: {name: randomized, max_position: 100}",
        [":2: positions.max_position: 100 ids", "training windows of 200 characters", "200 or more"],
    ),
    "too few ids for the longest window": (
        "training: {length_range: [100, 300]}\npositions: {name: skipped, max_position: 299}",
        [":2: positions.max_position: 299 ids", "300"],
    ),
    "no ids of its own": ("encoding: bipe\npositions: skipped", [":2: positions: bipe reads its ids"]),
    "between whole numbers": ("encoding: t5\npositions: scaled", [":2: positions: scaled", "mean nothing to t5"]),
    "a start beyond": ("positions: {name: shifted, shifts: 3, start: 9}", ["positions.start", "at most", "9"]),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=list(REFUSALS))
def test_what_does_not_fit_is_refused(tmp_path: Path, case: tuple[str, list[str]]) -> None:
    text, parts = case
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    refuses(tmp_path, ["config", str(tmp_path / "bad.yaml")], str(tmp_path / "bad.yaml"), *parts)
