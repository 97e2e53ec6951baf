"""The program as it is started, without a new interpreter: its real entry point with arguments and streams."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import torch

from pe_cli.signals import undeferred
from pe_cli.training import Trainer

TINY = {
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.n_layers": 1,
    "training.length": 16,
    "training.batch_size": 4,
    "training.steps": 40,
    "training.warmup_steps": 5,
    "training.learning_rate": 0.003,
    "training.muon_learning_rate": 0.02,
}
"""An experiment that trains in the blink of an eye, by a recipe that does not follow the defaults."""


@dataclass(frozen=True)
class Finished:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON and nothing beside it."""
        return strict_json(self.out)


def strict_json(text: str) -> Any:
    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def sets(**changes: object) -> list[str]:
    """`--set` for TINY with changes; a double underscore stands for the dot of a key."""
    values = {**TINY, **{key.replace("__", "."): value for key, value in changes.items()}}
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def training(folder: Path, *arguments: object, **changes: object) -> list[object]:
    """Arguments of `pe`: TINY with changes, trained on text.txt in `folder`, with `folder` for its results."""
    folder.mkdir(exist_ok=True)
    text = folder / "text.txt"
    if not text.exists():
        write_text(text)
    return ["train", "--data", text, "--out", folder, "--threads", 1, *arguments, *sets(**changes)]


def pe(*arguments: object) -> Finished:
    """`pe ARGUMENTS` in this process: `pe_cli.cli.main`, redirected streams, and everything global put back."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with (
        patch.object(sys, "argv", ["pe", *map(str, arguments)]),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
        unchanged(),
    ):
        code = exit_code()
    out.flush()
    err.flush()
    return Finished(code, written(out), written(err))


def written(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def exit_code() -> int:
    from pe_cli.cli import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextmanager
def unchanged() -> Iterator[None]:
    """Signal handlers, threads and the global generator as they were before."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        torch.set_num_threads(threads)
        torch.set_rng_state(state)


@contextmanager
def signals_at(step: int, *numbers: int) -> Iterator[None]:
    """A process that trains gets these signals while it makes the step after `step`."""
    before = Trainer.one_step

    def one_step(trainer: Trainer) -> float:
        if trainer.step == step:
            for number in numbers:
                os.kill(os.getpid(), number)
        return before(trainer)

    with patch.object(Trainer, "one_step", one_step):
        yield


def pe_process(
    folder: Path, *arguments: object, signals: Sequence[int] = (), step: int = 0, largest_file: int | None = None
) -> Finished:
    """`pe ARGUMENTS` in a process of its own, which may be killed at a step or limited in its file sizes.

    The code is the one that a shell would see. The streams are files in `folder`.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["pe_cli.commands", "torch._dynamo"])
    texts = list(map(str, arguments))
    process = context.Process(target=child, args=(folder, texts, list(signals), step, largest_file))
    process.start()
    process.join(300)
    code = process.exitcode
    process.kill()
    assert code is not None
    return Finished(code if code >= 0 else 128 - code, *(read(folder / name) for name in ("stdout", "stderr")))


def child(folder: Path, arguments: list[str], signals: list[int], step: int, largest_file: int | None) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    for held_back in (signal.SIGINT, signal.SIGTERM):  # as in what runs are forked from, if that is the same process
        undeferred(held_back)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    with patch.object(sys, "argv", ["pe", *arguments]), signals_at(step, *signals):
        sys.exit(exit_code())


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def write_text(path: Path, count: int = 600) -> Path:
    """A text of some kilobytes in 15 different characters, always the same."""
    draw = random.Random(0)
    words = [draw.choice(["the", "cat", "sat", "on", "a", "mat", "\nand", "purred"]) for _ in range(count)]
    path.write_text(" ".join(words), encoding="utf-8")
    return path


def only_run(out: Path) -> Path:
    """The one run directory under `out`."""
    [found] = [path for path in (out / "runs").iterdir() if (path / "run.json").is_file() and not path.is_symlink()]
    return found


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file under `folder`."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def info(run: Path) -> dict[str, Any]:
    """The content of run.json, which is strict JSON."""
    found: dict[str, Any] = strict_json((run / "run.json").read_text(encoding="utf-8"))
    return found
