"""`pe train` after an interruption: what goes on, what is refused, and what a damaged checkpoint says."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import hashes, only_run, pe, pe_process, signals_at, training
from small_runs import refused
from torch import Tensor

from pe_cli import checkpoint, devices, runs
from pe_cli.versions import versions


def short(folder: Path, *arguments: object, **changes: Any) -> list[object]:
    """Arguments of a training of three steps."""
    return training(folder, *arguments, **{"training__steps": 3, **changes})


def interrupted(folder: Path, **changes: Any) -> Path:
    with signals_at(1, signal.SIGINT):
        assert pe(*short(folder, **changes)).code == 130
    return only_run(folder)


# --- what was interrupted


def test_what_was_interrupted_asks_what_to_do(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    before = hashes(run)
    refused(pe(*short(tmp_path)), f"{run} was interrupted", "--resume", "--force")
    refused(pe(*short(tmp_path, "--resume", "--force")), "give one of them")
    assert hashes(run) == before
    resumed = pe(*short(tmp_path, "--resume"))
    assert (resumed.code, resumed.err.splitlines()[0]) == (0, f"{run} is interrupted: going on")
    assert runs.open_run(run).status == "finished"


@pytest.mark.parametrize(
    "change",
    [
        {"training__steps": 60},
        {"model__n_heads": 4},
        {"encoding": "alibi"},
        {"training__learning_rate": 0.01},
        {"seed": 3},
    ],
    ids=str,
)
def test_a_changed_experiment_does_not_go_on_as_another(tmp_path: Path, change: dict[str, Any]) -> None:
    run = interrupted(tmp_path)
    before = hashes(tmp_path)
    refused(pe(*short(tmp_path, "--resume", **change)), "there is nothing to resume at", run.name)
    assert hashes(tmp_path) == before


def test_a_changed_text_does_not_go_on_either(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text(text.read_text().replace("p", "q"))  # as many letters, other ids
    refused(pe(*short(tmp_path, "--resume")), "there is nothing to resume at", run.name)
    assert pe(*short(tmp_path, "--quiet")).code == 0
    assert len([path for path in (tmp_path / "runs").glob("*/run.json") if not path.parent.is_symlink()]) == 2


def test_nothing_to_resume(tmp_path: Path) -> None:
    refused(pe(*short(tmp_path, "--resume")), "there is nothing to resume at", "there are no runs in")


def test_two_processes_do_not_train_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LOCK_SECONDS", 0.05)
    run = interrupted(tmp_path)
    name, identity, _ = run.name.rsplit("-", 2)
    with runs.create(run.parent, name, identity, 1337, force=False, resume=True):
        refused(pe(*short(tmp_path, "--resume")), "another process is training or evaluating this run", str(run))
    assert pe(*short(tmp_path, "--resume")).code == 0


# --- a checkpoint that cannot be used


class Trap:
    """What a pickle that is opened would do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


OTHER_META: dict[str, tuple[str, Any]] = {
    "rows that are none": ("rows", {"training": ["x"], "validation": [], "recent": []}),
    "a step that is none": ("step", "x"),
    "seconds that are none": ("seconds", None),
    "no rows": ("rows", 3),
}


def rewrite(path: Path, change: Callable[[str, Tensor], Tensor]) -> None:
    """A whole checkpoint with other tensors, by its digest too."""
    tensors, meta = checkpoint.load(path, "")
    checkpoint.save(path, {name: change(name, tensor) for name, tensor in tensors.items()}, meta)


@pytest.mark.parametrize(
    "damage",
    [
        *("cut", "flipped", "empty", "pickle", "larger model", "other optimiser", "other version"),
        *("momenta of another shape", "momenta of whole numbers", "weights of whole numbers", "a momentum too few"),
        *OTHER_META,
    ],
)
def test_a_damaged_or_foreign_checkpoint_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    run = interrupted(tmp_path / "a")
    state = run / "state.safetensors"
    whole = state.read_bytes()
    match damage:
        case "cut":
            state.write_bytes(whole[: len(whole) // 2])
        case "flipped":
            state.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        case "empty":
            state.write_bytes(b"")
        case "pickle":
            state.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
        case "larger model":
            other = interrupted(tmp_path / "b", model__d_model=32, model__n_layers=6)
            state.write_bytes((other / "state.safetensors").read_bytes())
        case "other optimiser":
            other = interrupted(tmp_path / "b", training__optimizer="adamw")
            state.write_bytes((other / "state.safetensors").read_bytes())
        case "momenta of another shape":  # fused kernels would read beyond their ends
            rewrite(state, lambda name, one: one[..., :1] if one.ndim > 1 and "optimizer." in name else one)
        case "momenta of whole numbers":
            rewrite(state, lambda name, one: one.long() if "optimizer." in name else one)
        case "weights of whole numbers":
            rewrite(state, lambda name, one: one.long() if name.startswith("model.") else one)
        case "a momentum too few":
            tensors, meta = checkpoint.load(state, "")
            gone = next(name for name in tensors if name.endswith(".exp_avg_sq"))
            checkpoint.save(state, {name: tensors[name] for name in tensors if name != gone}, meta)
        case "rows that are none" | "a step that is none" | "seconds that are none" | "no rows":
            tensors, meta = checkpoint.load(state, "")
            key, value = OTHER_META[damage]
            checkpoint.save(state, tensors, {**meta, key: value})
        case "other version":
            tensors, meta = checkpoint.load(state, "")
            checkpoint.save(state, {name.replace("blocks", "layers"): tensors[name] for name in tensors}, meta)
    before = hashes(run)
    done = pe(*short(tmp_path / "a", "--resume", "--quiet"))
    refused(done, str(state), "train it again with --force")
    assert len(done.err.splitlines()) == 1
    assert hashes(run) == before
    assert not (tmp_path / "sprung").exists()
    assert pe(*short(tmp_path / "a", "--force")).code == 0


def test_it_goes_on_in_the_precision_it_was_begun_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a second machine, where `auto` is another precision: half a run of each would be neither."""
    monkeypatch.setattr(devices, "has_bfloat16_units", lambda device: True)
    assert pe(*short(tmp_path / "straight")).code == 0
    run = interrupted(tmp_path)
    monkeypatch.setattr(devices, "has_bfloat16_units", lambda device: False)
    resumed = pe(*short(tmp_path, "--resume"))
    assert (resumed.code, "other means" in resumed.err) == (0, False)
    straight, found = (runs.open_run(path).info for path in (only_run(tmp_path / "straight"), run))
    assert found["precision"] == straight["precision"] == "bfloat16"
    assert found["weight_sha256"] == straight["weight_sha256"]


def test_other_means_than_before_are_said_and_recorded(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    info = json.loads((run / "run.json").read_text())
    info |= {"threads": 7, "versions": {**info["versions"], "torch": "2.0.0"}}
    (run / "run.json").write_text(json.dumps(info))
    resumed = pe(*short(tmp_path, "--resume"))
    assert resumed.code == 0
    [said] = [line for line in resumed.err.splitlines() if "goes on with other means" in line]
    parts = [
        "device",
        "precision",
        "numpy",
        "threads 7 before, 1 now",
        f"torch 2.0.0 before, {versions()['torch']} now",
    ]
    assert [part for part in parts if part in said] == parts[3:]
    found = runs.open_run(run).info
    assert (found["threads"], found["versions"] == versions()) == (1, True)


@pytest.mark.parametrize("precision", ["float8", "", 3, None])
def test_a_precision_that_is_none_is_a_clear_error(tmp_path: Path, precision: object) -> None:
    run = interrupted(tmp_path)
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "precision": precision}))
    refused(pe(*short(tmp_path, "--resume", "--quiet")), "precision", "known" if precision == "float8" else "--force")


def test_a_checkpoint_that_cannot_be_read_now_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many open files, a disk that does not answer: it may be read the next time."""
    recipe = {"training__save_every": 10}
    with signals_at(24, signal.SIGINT):
        assert pe(*training(tmp_path, **recipe)).code == 130
    state = only_run(tmp_path) / "state.safetensors"
    read = Path.read_bytes

    def unread(path: Path) -> bytes:
        if path == state:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(path)

    before = hashes(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", unread)
        refused(pe(*training(tmp_path, "--resume", "--quiet", **recipe)), f"cannot read {state}")
    assert hashes(tmp_path) == before
    assert pe(*training(tmp_path, "--resume", **recipe)).code == 0


def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(tmp_path: Path) -> None:
    recipe = {"training__save_every": 10}
    with signals_at(24, signal.SIGINT):
        assert pe(*training(tmp_path, **recipe)).code == 130
    state = only_run(tmp_path) / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-1])
    done = pe(*training(tmp_path, "--resume", **recipe))
    assert done.code == 0, done
    assert f"{state} is damaged" in done.err
    assert ": going on from the checkpoint before it" in done.err
    straight = only_run(tmp_path / "straight") if pe(*training(tmp_path / "straight", **recipe)).code == 0 else tmp_path
    run = only_run(tmp_path)
    assert runs.open_run(run).info["weight_sha256"] == runs.open_run(straight).info["weight_sha256"]
    assert (run / "validation.csv").read_bytes() == (straight / "validation.csv").read_bytes()
    assert [line.split(",")[:3] for line in (run / "training.csv").read_text().splitlines()] == [
        line.split(",")[:3] for line in (straight / "training.csv").read_text().splitlines()
    ]
    assert not (run / "state.previous.safetensors").exists(), "nothing follows the last one"


# --- no space


def test_no_space_for_a_checkpoint_is_said_and_costs_nothing(tmp_path: Path) -> None:
    recipe = {"training__save_every": 10}
    with signals_at(19, signal.SIGINT):
        assert pe(*training(tmp_path, **recipe)).code == 130
    run = only_run(tmp_path)
    state = (run / "state.safetensors").read_bytes()
    done = pe_process(tmp_path, *training(tmp_path, "--resume", "--quiet", **recipe), largest_file=16 * 1024)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: cannot write {run / 'state.safetensors'}: no space")
    assert done.err.endswith("once that is mended, the same command with --resume goes on\n")
    assert len(done.err.splitlines()) == 1
    assert (runs.open_run(run).status, runs.open_run(run).info["step"]) == ("failed", 20)
    assert (run / "state.safetensors").read_bytes() == state
    assert [path.name for path in run.iterdir() if path.name.endswith(".tmp")] == []
    assert pe(*training(tmp_path, "--resume", **recipe)).code == 0
    straight = pe(*training(tmp_path / "straight", "--json", **recipe))
    assert runs.open_run(run).info["weight_sha256"] == straight.json["weight_sha256"]
