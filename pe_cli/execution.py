"""Runs side by side: a process for each, so that one that fails, or is killed, costs no other."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import torch

from pe_cli import sources
from pe_cli.comparison import Outcome, Planned
from pe_cli.config import Experiment
from pe_cli.devices import choose_device, choose_precision, choose_threads, usable_cores
from pe_cli.errors import Interrupted, PeError, RunError, RunFailed
from pe_cli.evaluation import is_out_of_memory
from pe_cli.extrapolation import draw, extrapolate, is_current, open_evaluation
from pe_cli.runs import Run, create, open_run
from pe_cli.signals import interruptible
from pe_cli.sources import Source
from pe_cli.trained import open_trained
from pe_cli.training import Observer, Progress, Trainer

MESSAGE_SECONDS = 0.5
"""A run tells its progress no more often than this."""


@dataclass(frozen=True)
class Settings:
    """What all runs of a command share."""

    root: Path
    device: torch.device
    threads: int
    force: bool


def prepared(
    planned: Collection[Planned], out: Path, device: str, threads: int | None, jobs: int | None, force: bool = False
) -> tuple[Settings, int]:
    """What all runs share, and how many are made at a time. ConfigError for what this machine does not offer."""
    place = choose_device(device)
    for run in planned:
        choose_precision(run.experiment.training.precision, place)
    at_once = jobs or (min(usable_cores(), max(1, len(planned))) if place.type == "cpu" else 1)
    return Settings(out / "runs", place, choose_threads(threads, at_once), force), at_once


@dataclass(frozen=True)
class Message:
    """What a run tells while it works: which part of its work is done, of how much, and a detail."""

    run: str
    done: int
    total: int
    detail: str


class Watcher(Protocol):
    """Who is told how the runs go."""

    def progress(self, message: Message) -> None: ...

    def note(self, text: str) -> None: ...

    def ended(self, outcome: Outcome) -> None: ...


def train_run(
    run: Run,
    experiment: Experiment,
    corpus: Source,
    device: torch.device,
    observer: Observer,
    interrupted: Callable[[], int | None],
) -> Run:
    """Train in a directory from `runs.create`, or leave a finished one as it is; its lock is given back.

    A failure is recorded in run.json and raised again, an expected one as RunFailed.
    """
    with run:
        if run.status in ("finished", "diverged"):
            return run
        trainer = Trainer(run, experiment, corpus, device)
        trainer.begin()
        try:
            trainer.train(observer, interrupted)
        except Interrupted:
            raise
        except BaseException as error:
            reason = in_words(error)
            run.update(status="failed", reason=reason or f"{type(error).__name__}: {error}")
            if reason is not None:
                raise RunFailed(reason) from error
            raise
    return open_run(run.path)


def in_words(error: BaseException) -> str | None:
    """Why a run failed; None where that is a fault of the program."""
    if is_out_of_memory(error):
        return "out of memory: a smaller training.batch_size, training.length or model needs less"
    return str(error) if isinstance(error, PeError) else None


def context() -> BaseContext:
    """How processes are made: each a copy of one that has imported everything."""
    found = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    found.set_forkserver_preload([__name__])
    return found


def execute(
    planned: Sequence[Planned],
    settings: Settings,
    jobs: int,
    watcher: Watcher,
    interrupted: Callable[[], int | None],
    fail_fast: bool = False,
) -> list[Outcome]:
    """Train and evaluate all runs, `jobs` at a time. After a signal the running ones save and the rest is left."""
    processes = context()
    waiting = deque(planned)
    active: dict[Connection, tuple[BaseProcess, Planned]] = {}
    outcomes: dict[str, Outcome] = {}
    stopping = False

    def ended(outcome: Outcome) -> None:
        outcomes[outcome.planned.directory] = outcome
        watcher.ended(outcome)

    while active or (waiting and not stopping):
        while waiting and not stopping and len(active) < jobs:
            run = waiting.popleft()
            receiver, sender = processes.Pipe(duplex=False)
            process = processes.Process(  # type: ignore[attr-defined]
                target=work, args=(run, settings, sender), daemon=True
            )
            process.start()
            sender.close()
            active[receiver] = (process, run)
        ready = wait(list(active), timeout=0.2)
        for receiver in [pipe for pipe in active if pipe in ready]:
            process, run = active[receiver]
            try:
                message = receiver.recv()
            except EOFError:
                process.join()
                del active[receiver]
                if run.directory not in outcomes:
                    status = "interrupted" if stopping else "failed"
                    ended(Outcome(run, status, ending(process.exitcode), directory_of(run, settings)))
                continue
            if isinstance(message, Outcome):
                ended(message)
            elif isinstance(message, Message):
                watcher.progress(message)
            else:
                watcher.note(f"{run.directory}: {message}")
        failed = fail_fast and any(outcome.status != "finished" for outcome in outcomes.values())
        if not stopping and (interrupted() is not None or failed):
            stopping = True
            for process, _ in active.values():
                process.terminate()
    left = [Outcome(run, "interrupted", "not begun", None) for run in planned if run.directory not in outcomes]
    return [outcomes[run.directory] for run in planned if run.directory in outcomes] + left


def ending(code: int | None) -> str:
    """How a process ended that could not say so itself."""
    if code is not None and code < 0:
        return f"its process was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"its process ended with exit code {code}"


class Sender(Observer):
    """Tells the parent process how the training and then the evaluation of a run go."""

    def __init__(self, run: Planned, pipe: Connection) -> None:
        self.run, self.pipe = run, pipe
        self.last = 0.0

    def progress(self, progress: Progress) -> None:
        self.tell(progress.step, progress.steps, training_detail(progress))

    def note(self, text: str) -> None:
        self.pipe.send(text)

    def tell(self, done: int, total: int, detail: str) -> None:
        if time.monotonic() - self.last > MESSAGE_SECONDS or done >= total:
            self.last = time.monotonic()
            self.pipe.send(Message(self.run.directory, done, total, detail))


def training_detail(progress: Progress) -> str:
    return f"training: loss {progress.loss:.3f}, {progress.chars_per_second / 1000:.1f}k chars/s"


def work(planned: Planned, settings: Settings, pipe: Connection) -> None:
    """The whole life of one run, in a process of its own. Whatever happens, the parent hears of it."""
    sender = Sender(planned, pipe)
    with interruptible() as received:
        # a terminal sends Ctrl-C to this process too; the parent hears it and asks with SIGTERM, once
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            outcome = train_and_evaluate(planned, settings, sender, received)
        except Interrupted as stop:
            outcome = Outcome(planned, "interrupted", str(stop), directory_of(planned, settings))
        except PeError as error:
            outcome = Outcome(planned, "failed", str(error), directory_of(planned, settings))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            outcome = Outcome(planned, "failed", reason, directory_of(planned, settings))
    pipe.send(outcome)
    pipe.close()


def directory_of(planned: Planned, settings: Settings) -> Path | None:
    path = settings.root / planned.directory
    return path if (path / "run.json").is_file() else None


def train_and_evaluate(
    planned: Planned, settings: Settings, sender: Sender, received: Callable[[], int | None]
) -> Outcome:
    """Train or go on, then evaluate and write the tables of the run; what is there already is reused."""
    torch.set_num_threads(settings.threads)
    path = settings.root / planned.directory
    experiment = planned.experiment
    resume = path.exists() and not settings.force
    run = create(settings.root, experiment.name, planned.identity, experiment.seed, force=settings.force, resume=resume)
    corpus = sources.load(experiment.data, run.text("alphabet") if run.info else None)
    run = train_run(run, experiment, corpus, settings.device, sender, received)
    if run.status != "finished":
        return Outcome(planned, run.status, run.info.get("reason"), run.path)
    evaluation = open_evaluation(open_trained(run, settings.device), experiment.evaluation)
    if is_current(evaluation):
        return Outcome(planned, "finished", None, run.path)
    total, fed = sum(evaluation.planned_chars().values()), 0

    def advance(chars: int) -> None:
        nonlocal fed
        fed += chars
        if (number := received()) is not None:
            raise Interrupted("stopped while it was being evaluated; its training is finished", number)
        sender.tell(fed, total, "evaluating")

    tables = extrapolate(evaluation, advance)
    try:
        draw(evaluation, tables)
    except RunError as error:
        sender.note(str(error))
    return Outcome(planned, "finished", None, run.path)
