"""One training in its directory, and what became of it told there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch

from pe_cli.config import Experiment
from pe_cli.errors import Interrupted, PeError, RunError, RunFailed
from pe_cli.evaluation import is_out_of_memory
from pe_cli.runs import OVER, Run, open_run
from pe_cli.sources import Source
from pe_cli.training import Observer, Progress, Trainer


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
        if run.status in OVER:
            return run
        trainer = Trainer(run, experiment, corpus, device)
        trainer.begin(observer.note)
        try:
            trainer.train(observer, interrupted)
        except Interrupted:
            raise
        except BaseException as error:
            reason = in_words(error)
            with suppress(RunError):  # on a full disk there is no room for that either
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


def training_detail(progress: Progress) -> str:
    return f"training: loss {progress.loss:.3f}, {progress.chars_per_second / 1000:.1f}k chars/s"
