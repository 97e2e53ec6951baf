"""How a training ends that does not work: as a result with its step, or as a failure that costs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from command_line import info, only_run, pe, training

from pe_cli.errors import RunError
from pe_cli.runs import Run, open_run
from pe_cli.training import Trainer


@contextmanager
def unwritten(status: str, error: Exception) -> Iterator[None]:
    """run.json comes to say everything but this status."""
    before = Run.update

    def update(run: Run, **fields: Any) -> None:
        if fields.get("status") == status:
            raise error
        before(run, **fields)

    with patch.object(Run, "update", update):
        yield


# --- divergence


def test_a_diverging_run_is_a_result(tmp_path: Path) -> None:
    done = pe(*training(tmp_path, "--json", training__learning_rate=1e5))
    run = only_run(tmp_path)
    assert (done.code, done.json["status"], done.json["step"]) == (1, "diverged", 6)  # the first after warm-up
    assert done.json == {**info(run), "directory": str(run)}
    assert "at step 6" in done.json["reason"]
    assert (done.json["train_loss"], done.json["validation_loss"]) == (None, None)
    assert f"{run}: diverged: the loss was" in done.err
    assert "Traceback" not in done.err
    assert not (run / "model.safetensors").exists()
    again = pe(*training(tmp_path, "--resume", training__learning_rate=1e5))
    assert again.code == 1
    assert "is diverged; --force trains it again" in again.err


@pytest.mark.parametrize(
    ("losses", "step"),
    [
        ([100.0] * 5 + [2.0, 2.0, 8.2], 8),  # above 3 ln 15 = 8.124, but only after five steps of warm-up
        ([2.0, math.inf], 2),
        ([2.0, math.nan], 2),
        ([100.0] * 5 + [8.1] * 7 + [math.nan], 13),
    ],
)
def test_the_first_loss_that_is_too_high_or_not_finite_ends_a_run(
    tmp_path: Path, losses: list[float], step: int
) -> None:
    with patch.object(Trainer, "one_step", side_effect=losses):
        done = pe(*training(tmp_path, "--json"))
    assert (done.code, done.json["status"], done.json["step"]) == (1, "diverged", step)
    assert f"at step {step}" in done.json["reason"]


def test_no_matrix_step_however_wide_breaks_a_file(tmp_path: Path) -> None:
    done = pe(*training(tmp_path, "--json", training__muon_learning_rate=1e30))
    assert (done.code, done.json["status"]) == (1, "diverged")
    assert done.json["step"] == 2


def test_a_kill_in_the_moment_of_divergence_does_not_hide_it(tmp_path: Path) -> None:
    recipe = {"training__save_every": 2}
    losses = [2.0, 2.0, 2.0, math.nan, 2.0]
    with (
        patch.object(Trainer, "one_step", side_effect=losses),
        unwritten("diverged", ZeroDivisionError()),
        pytest.raises(ZeroDivisionError),
    ):
        pe(*training(tmp_path, **recipe))
    with patch.object(Trainer, "one_step", side_effect=losses[2:]):
        done = pe(*training(tmp_path, "--json", "--resume", **recipe))
    assert (done.code, done.json["status"], done.json["step"]) == (1, "diverged", 4)


# --- failure


@contextmanager
def failing_at(step: int, error: Exception) -> Iterator[None]:
    before = Trainer.one_step

    def one_step(trainer: Trainer) -> float:
        if trainer.step == step:
            raise error
        return before(trainer)

    with patch.object(Trainer, "one_step", one_step):
        yield


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")])
def test_too_little_memory_is_one_short_message(tmp_path: Path, error: Exception) -> None:
    with failing_at(15, error):
        done = pe(*training(tmp_path, "--quiet"))
    reason = "out of memory: a smaller training.batch_size, training.length or model needs less"
    assert (done.code, done.out, done.err) == (1, "", f"error: {reason}\n")
    assert (info(only_run(tmp_path))["status"], info(only_run(tmp_path))["reason"]) == ("failed", reason)


def test_why_a_run_failed_is_said_though_it_cannot_be_written(tmp_path: Path) -> None:
    full = RunError("cannot write run.json: no space left on the device")
    with failing_at(15, MemoryError()), unwritten("failed", full):
        done = pe(*training(tmp_path, "--quiet"))
    reason = "out of memory: a smaller training.batch_size, training.length or model needs less"
    assert (done.code, done.out, done.err) == (1, "", f"error: {reason}\n")
    assert open_run(only_run(tmp_path)).status == "interrupted"


def test_a_fault_of_the_program_keeps_its_traceback_and_the_checkpoint(tmp_path: Path) -> None:
    recipe = {"training__save_every": 10}
    with failing_at(15, ZeroDivisionError("odd")), pytest.raises(ZeroDivisionError, match="odd"):
        pe(*training(tmp_path, **recipe))
    run = only_run(tmp_path)
    assert (info(run)["status"], info(run)["reason"]) == ("failed", "ZeroDivisionError: odd")
    refused = pe(*training(tmp_path, **recipe))
    assert refused.code == 2
    assert "failed: go on with --resume, or begin again with --force" in refused.err
    assert pe(*training(tmp_path, "--resume", **recipe)).code == 0
    straight = pe(*training(tmp_path / "straight", "--json", **recipe)).json
    assert info(run)["weight_sha256"] == straight["weight_sha256"]
