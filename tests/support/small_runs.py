"""Configs of experiments that train in a moment, and comparisons that run them without processes."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from command_line import Finished, pe

from pe_cli import claiming, comparing, plots
from pe_cli.comparison import Outcome, Planned
from pe_cli.execution import Message, Settings, Watcher, work

SMALL: dict[str, dict[str, Any]] = {
    "model": {"d_model": 16, "n_heads": 2, "n_layers": 1},
    "training": {"length": 16, "batch_size": 4, "steps": 10, "warmup_steps": 2, "precision": "float32"},
    "evaluation": {"lengths": [16, 32, 64], "windows": 6, "scored": 8, "strategies": ["none"]},
}


def text_file(path: Path, chars: int = 2500) -> Path:
    """Words in an order that is always the same. Of 2500 characters 250 are held out, and windows of 133 fit."""
    draw = random.Random(0)
    words = " ".join(draw.choice(["the", "cat", "sat", "on", "a", "mat", "\nand", "purred"]) for _ in range(chars))
    path.write_text(words[:chars], encoding="utf-8")
    return path


def config_file(path: Path, **changes: Any) -> Path:
    """SMALL on text.txt beside the config, with changes by block: `training={"steps": 5}`, `encoding="rope"`."""
    values: dict[str, Any] = {"data": "text.txt", **SMALL}
    for key, change in changes.items():
        values[key] = {**SMALL[key], **change} if key in SMALL else change
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")  # JSON is YAML
    if not (path.parent / "text.txt").exists():
        text_file(path.parent / "text.txt")
    return path


def compare(*arguments: object) -> Finished:
    return pe("compare", *arguments, "--threads", 1)


def configs(folder: Path, *encodings: str) -> list[Path]:
    """A config of each encoding, named after it."""
    return [config_file(folder / f"{name}.yaml", encoding=name) for name in encodings]


def statuses(done: Finished) -> dict[str, str]:
    """How the runs of `pe compare --json` ended."""
    return {run["name"]: run["status"] for run in done.json["runs"]}


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def refused(done: Finished, *parts: str) -> None:
    """Bad input: exit code 2, one short message with all of these on standard error, and no results."""
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("error: "), done.err
    assert len(done.err.splitlines()) <= 15, done.err
    assert "Traceback" not in done.err
    assert [part for part in parts if part not in done.err] == [], done.err


class Pipe:
    """What a run sends goes to the watcher at once; the last is its outcome."""

    def __init__(self, run: Planned, watcher: Watcher) -> None:
        self.run, self.watcher = run, watcher
        self.outcome: Outcome | None = None

    def send(self, message: Any) -> None:
        if isinstance(message, Outcome):
            self.outcome = message
            self.watcher.ended(message)
        elif isinstance(message, Message):
            self.watcher.progress(message)
        else:
            self.watcher.note(f"{self.run.directory}: {message}")

    def close(self) -> None:
        pass


def one_after_another(
    planned: Sequence[Planned],
    settings: Settings,
    jobs: int,
    watcher: Watcher,
    interrupted: Callable[[], int | None],
    fail_fast: bool = False,
) -> list[Outcome]:
    """In place of `execute`: the same work in this process."""
    outcomes = []
    for run in planned:
        pipe = Pipe(run, watcher)
        work(run, settings, cast(Any, pipe))
        assert pipe.outcome is not None
        outcomes.append(pipe.outcome)
    return outcomes


def stub(rows: Any, path: Path, title: str, diverged: Any = ()) -> None:
    path.write_bytes(b"picture")


def without_processes_and_pictures(monkeypatch: Any) -> None:
    """They take longer than all the rest."""
    in_this_process(monkeypatch)
    for name in ("plot_extrapolation", "plot_comparison"):
        monkeypatch.setattr(plots, name, stub)


def in_this_process(monkeypatch: Any) -> None:
    """`pe compare` and `pe claims` without processes, for tests of what comes before and after them."""
    monkeypatch.setattr(comparing, "execute", one_after_another)
    monkeypatch.setattr(claiming, "execute", one_after_another)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
