"""Runs side by side: a process for each, so that one that fails, or is killed, costs no other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from multiprocessing import forkserver, get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import torch

from pe_cli import evaluated, extrapolation, files, sources
from pe_cli.comparison import Outcome, Planned
from pe_cli.devices import choose_device, choose_precision, choose_threads, compute_with, usable_cores
from pe_cli.errors import Busy, Interrupted, PeError
from pe_cli.extrapolation import open_evaluation
from pe_cli.runs import alone, create
from pe_cli.signals import deferred, interruptible, undeferred
from pe_cli.single import train_run, training_detail
from pe_cli.trained import open_trained
from pe_cli.training import Observer, Progress

MESSAGE_SECONDS = 0.5
"""A run tells its progress no more often than this."""
WAITING_SECONDS = 1.0
"""How often a run that another command works on is asked for."""


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
            try:
                process.start()
            except (OSError, EOFError) as error:  # the one that all are forked from was killed; the next brings another
                reason = f"its process could not be started: {type(error).__name__}: {error}"
                ended(Outcome(run, "failed", reason, directory_of(run, settings)))
                continue
            finally:
                sender.close()
            active[receiver] = (process, run)
        ready = wait(list(active), timeout=0.2)
        for receiver in [pipe for pipe in active if pipe in ready]:
            process, run = active[receiver]
            try:
                message = receiver.recv()
            except (EOFError, OSError):  # OSError: it was killed in the middle of a message
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


def context() -> BaseContext:
    """How processes begin: as copies of one that has imported all they need, where the system has that."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    found = get_context("forkserver")
    found.set_forkserver_preload([__name__])
    resource_tracker.ensure_running()  # it would end what is deferred
    try:
        with deferred():  # a terminal sends Ctrl-C to all processes of a command: one that imports would die of it
            forkserver.ensure_running()
    except OSError:  # it needs a socket, and the path of one is short: TMPDIR may be too long
        return get_context("spawn")
    return found


def ending(code: int | None) -> str:
    """How a process ended that could not say so itself."""
    if code is not None and code < 0:
        return f"its process was killed by signal {-code} ({signal.strsignal(-code)}); the same command goes on with it"
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


def work(planned: Planned, settings: Settings, pipe: Connection) -> None:
    """The whole life of one run, in a process of its own. Whatever happens, the parent hears of it."""
    sender = Sender(planned, pipe)
    end_with_parent()
    with interruptible() as received:
        # a terminal sends Ctrl-C to this process too; the parent hears it and asks with SIGTERM, once
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        undeferred(signal.SIGTERM)
        try:
            outcome = when_free(planned, settings, sender, received)
        except Interrupted as stop:
            outcome = Outcome(planned, "interrupted", str(stop), directory_of(planned, settings))
        except PeError as error:
            outcome = Outcome(planned, "failed", str(error), directory_of(planned, settings))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            outcome = Outcome(planned, "failed", reason, directory_of(planned, settings))
    pipe.send(outcome)
    pipe.close()


def end_with_parent() -> None:
    """A run that nobody waits for any more would keep its lock, and the next command out. Its checkpoint is there."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        files.abandon()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def directory_of(planned: Planned, settings: Settings) -> Path | None:
    path = settings.root / planned.directory
    return path if (path / "run.json").is_file() else None


def when_free(planned: Planned, settings: Settings, sender: Sender, received: Callable[[], int | None]) -> Outcome:
    """Another command may be at work on the same run: then what it makes is waited for, and used."""
    told = False
    while True:
        try:
            return train_and_evaluate(planned, settings, sender, received)
        except Busy as busy:
            if not told:
                sender.note(f"{busy}; this waits, and then uses what is there")
                told = True
        settings = replace(settings, force=False)  # two that force the same run would begin it again in turns
        time.sleep(WAITING_SECONDS)
        if (number := received()) is not None:
            raise Interrupted("stopped while it waited for another process", number)


def train_and_evaluate(
    planned: Planned, settings: Settings, sender: Sender, received: Callable[[], int | None]
) -> Outcome:
    """Train or go on, then evaluate and write the tables of the run; what is there already is reused."""
    compute_with(settings.threads)
    path = settings.root / planned.directory
    experiment = planned.experiment
    resume = path.exists() and not settings.force
    run = create(settings.root, experiment.name, planned.identity, experiment.seed, force=settings.force, resume=resume)
    corpus = sources.load(experiment.data, run.text("alphabet") if run.info else None)
    run = train_run(run, experiment, corpus, settings.device, sender, received)
    if run.status != "finished":
        return Outcome(planned, run.status, run.info.get("reason"), run.path)
    evaluation = open_evaluation(open_trained(run, settings.device), experiment.evaluation)
    if (before := extrapolation.current(evaluation)) is not None:
        return Outcome(planned, "finished", None, run.path, before)
    total, fed = sum(evaluation.planned_chars().values()), 0

    def advance(chars: int) -> None:
        nonlocal fed
        fed += chars
        if (number := received()) is not None:
            raise Interrupted("stopped while it was being evaluated; its training is finished", number)
        sender.tell(fed, total, "evaluating")

    with alone(run):
        extrapolation.write(evaluation, evaluation.run(advance), sender.note)
        return Outcome(planned, "finished", None, run.path, evaluated.read(run))
