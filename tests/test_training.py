"""What training promises: a continuation is exact, and watching changes nothing."""

from __future__ import annotations

import csv
import math
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from command_line import info, only_run, pe, pe_process, signals_at, training
from safetensors.torch import load_file

from pe_cli import training as loop
from pe_cli.corpus import load
from pe_cli.runs import open_run
from pe_cli.trained import open_trained
from pe_cli.training import Trainer

RECIPES: dict[str, dict[str, Any]] = {
    "muon": {"encoding": "learned", "training__precision": "float32"},
    "dropout": {"encoding": "rope", "model__dropout": 0.3, "training__save_every": 10},
    "adamw": {"encoding": "t5", "training__optimizer": "adamw", "training__weight_decay": 0.1},
}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of 40 steps without an interruption."""
    found = {}
    for name, recipe in RECIPES.items():
        folder = tmp_path_factory.mktemp(name)
        assert pe(*training(folder, **recipe)).code == 0
        found[name] = only_run(folder)
    return found


def tables(run: Path) -> list[list[dict[str, float]]]:
    """training.csv without its speed, and validation.csv."""
    found = []
    for name in ("training.csv", "validation.csv"):
        with open(run / name, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found.append([{key: float(row[key]) for key in row if key != "chars_per_second"} for row in rows])
    return found


def assert_same_training(run: Path, other: Path) -> None:
    """Bit for bit, but for the time that it took."""
    for key in ("status", "step", "data_digest", "weight_sha256", "train_loss", "validation_loss"):
        assert info(run)[key] == info(other)[key], key
    weights, others = open_run(run).load_weights(), open_run(other).load_weights()
    assert weights.keys() == others.keys()
    assert all(torch.equal(tensor, others[name]) for name, tensor in weights.items())
    assert tables(run) == tables(other)


# --- a continuation is exact


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path, straight: dict[str, Path], recipe: str) -> None:
    with signals_at(16, signal.SIGINT):
        assert pe(*training(tmp_path, **RECIPES[recipe])).code == 130
    run = only_run(tmp_path)
    assert (info(run)["status"], info(run)["step"]) == ("interrupted", 17)
    assert [row["step"] for row in tables(run)[0]] == [10]
    with signals_at(28, signal.SIGTERM):
        assert pe(*training(tmp_path, "--resume", **RECIPES[recipe])).code == 143
    assert [row["step"] for row in tables(run)[0]] == [10, 20]
    assert pe(*training(tmp_path, "--resume", **RECIPES[recipe])).code == 0
    assert [row["step"] for row in tables(run)[0]] == [10, 20, 30, 40]
    assert_same_training(run, straight[recipe])


def test_a_kill_between_checkpoints_costs_the_steps_since_the_last(tmp_path: Path, straight: dict[str, Path]) -> None:
    recipe = RECIPES["dropout"]
    assert pe_process(tmp_path, *training(tmp_path, **recipe), signals=[signal.SIGKILL], step=25).code == 137
    run = only_run(tmp_path)
    assert info(run)["status"] == "running"
    assert open_run(run).status == "interrupted"
    assert open_run(run).load_state()[1]["step"] == 20
    assert [row["step"] for row in tables(run)[0]] == [10, 20]
    steps: list[int] = []
    before = Trainer.one_step

    def counted(trainer: Trainer) -> float:
        steps.append(trainer.step)
        return before(trainer)

    with patch.object(Trainer, "one_step", counted):
        assert pe(*training(tmp_path, "--resume", **recipe)).code == 0
    assert steps == list(range(20, 40))
    assert_same_training(run, straight["dropout"])
    assert [path.name for path in run.iterdir() if path.name.endswith(".tmp")] == []


def test_a_kill_before_the_first_checkpoint_begins_again(tmp_path: Path, straight: dict[str, Path]) -> None:
    recipe = RECIPES["adamw"]
    assert pe_process(tmp_path, *training(tmp_path, **recipe), signals=[signal.SIGKILL], step=25).code == 137
    assert not open_run(only_run(tmp_path)).has_state
    assert pe(*training(tmp_path, "--resume", **recipe)).code == 0
    assert_same_training(only_run(tmp_path), straight["adamw"])


def test_a_stop_between_the_last_checkpoint_and_the_last_word(tmp_path: Path, straight: dict[str, Path]) -> None:
    recipe = RECIPES["muon"]
    with patch.object(loop, "weight_sha256", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        pe(*training(tmp_path, **recipe))
    run = only_run(tmp_path)
    assert info(run)["status"] == "failed"
    assert pe(*training(tmp_path, "--resume", **recipe)).code == 0
    assert_same_training(run, straight["muon"])


def test_the_tables_follow_the_checkpoint(tmp_path: Path) -> None:
    with signals_at(12, signal.SIGINT), patch.object(Trainer, "write_tables"):
        assert pe(*training(tmp_path)).code == 130
    run = only_run(tmp_path)
    assert not (run / "training.csv").exists()  # as if killed between the two
    with patch.object(Trainer, "one_step", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        pe(*training(tmp_path, "--resume"))
    assert [[row["step"] for row in rows] for rows in tables(run)] == [[10], []]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_run_on_a_gpu_goes_on(tmp_path: Path) -> None:
    with signals_at(19, signal.SIGINT):
        assert pe(*training(tmp_path, "--device", "cuda", **RECIPES["dropout"])).code == 130
    done = pe(*training(tmp_path, "--device", "cuda", "--resume", **RECIPES["dropout"]))
    assert (done.code, info(only_run(tmp_path))["step"]) == (0, 40)


# --- watching changes nothing


@pytest.mark.parametrize("recipe", RECIPES)
def test_how_often_one_looks_changes_no_weight(tmp_path: Path, straight: dict[str, Path], recipe: str) -> None:
    often = {**RECIPES[recipe], "training__eval_every": 3, "training__save_every": 7}
    with patch.object(loop, "LOG_EVERY", 1):
        assert pe(*training(tmp_path, **often)).code == 0
    run = only_run(tmp_path)
    for key in ("data_digest", "weight_sha256", "validation_loss"):
        assert info(run)[key] == info(straight[recipe])[key], key
    rows, validation = tables(run)
    assert [row["step"] for row in rows] == list(range(1, 41))
    assert [row["step"] for row in validation] == [*range(3, 40, 3), 40]


def test_training_csv_has_means_of_ten_steps_and_the_rate_of_the_last(tmp_path: Path) -> None:
    recipe = {"training__steps": 25, "training__learning_rate": 0.004}
    with patch.object(loop, "LOG_EVERY", 1):
        assert pe(*training(tmp_path / "every", **recipe)).code == 0
    assert pe(*training(tmp_path / "tenth", **recipe)).code == 0
    single, rows = (tables(only_run(tmp_path / name))[0] for name in ("every", "tenth"))
    assert [row["step"] for row in rows] == [10, 20, 25]
    for row, steps in zip(rows, [slice(0, 10), slice(10, 20), slice(20, 25)], strict=True):
        assert row["loss"] == pytest.approx(np.mean([step["loss"] for step in single[steps]]), rel=1e-12)
    # warm-up ends with step 6 of 25: then the rate falls by 1/20 of its peak with every step
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.004 * 16 / 20, 0.004 * 6 / 20, 0.004 / 20])
    assert single[0]["learning_rate"] == pytest.approx(0.004 / 6)


# --- dropout acts in training, and in training alone


def test_validation_is_without_dropout(tmp_path: Path, straight: dict[str, Path]) -> None:
    run = straight["dropout"]
    trained = open_trained(open_run(run), torch.device("cpu"))
    corpus = load(str(run.parent.parent / "text.txt"))
    ids = torch.from_numpy(corpus.ids.astype(np.int64))
    # whole windows of 16 characters, spread evenly over the held-out tenth
    count = len(corpus.held_out) // 16
    starts = [corpus.held_start + k * (len(corpus.held_out) - 16) // (count - 1) for k in range(count)]
    windows = torch.stack([ids[start - 1 : start + 16] for start in starts])
    with torch.no_grad():
        likelihood = trained.model(windows[:, :-1]).log_softmax(dim=-1)
    expected = -likelihood.gather(-1, windows[:, 1:, None]).mean().item()
    assert info(run)["validation_loss"] == pytest.approx(expected, abs=1e-5)
    [row] = tables(run)[1]
    assert row["bits_per_char"] == pytest.approx(expected / math.log(2), abs=1e-5)
    without = {key: value for key, value in RECIPES["dropout"].items() if key != "model__dropout"}
    assert pe(*training(tmp_path, **without)).code == 0
    assert info(only_run(tmp_path))["weight_sha256"] != info(run)["weight_sha256"]


# --- numbers of steps


def test_no_steps_is_an_untrained_run(tmp_path: Path) -> None:
    done = pe(*training(tmp_path, "--json", training__steps=0))
    run = only_run(tmp_path)
    assert (done.code, done.json["status"], done.json["step"], done.json["train_loss"]) == (0, "finished", 0, None)
    assert done.json["validation_loss"] == pytest.approx(math.log(15), abs=0.2)  # 15 characters
    assert (run / "training.csv").read_text() == "step,loss,learning_rate,chars_per_second\n"
    assert [row["step"] for row in tables(run)[1]] == [0]


def test_the_last_step_is_saved_wherever_it_falls(tmp_path: Path) -> None:
    saved: list[int] = []
    before = Trainer.save

    def save(trainer: Trainer) -> None:
        saved.append(trainer.step)
        before(trainer)

    with patch.object(Trainer, "save", save):
        assert pe(*training(tmp_path, training__steps=7, training__save_every=5)).code == 0
    assert saved == [5, 7]
    run = only_run(tmp_path)
    weights, meta = open_run(run).load_state()
    assert meta["step"] == info(run)["step"] == 7
    for name, tensor in load_file(run / "model.safetensors").items():
        assert torch.equal(tensor, weights[f"model.{name}"]), name
