"""Training one run: batches, steps, validation, checkpoints, and an exact continuation."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from textwrap import shorten
from typing import Any, Protocol

import numpy as np
import torch
from pydantic import FiniteFloat, NonNegativeInt, TypeAdapter
from torch import Tensor

from pe_cli import files, sources
from pe_cli.config import Experiment, to_yaml
from pe_cli.devices import choose_precision
from pe_cli.errors import Interrupted, RunError
from pe_cli.instances import TaskData, validation_set
from pe_cli.optimizers import schedule
from pe_cli.protocols import Text, sampled
from pe_cli.runs import Run, weight_sha256
from pe_cli.scoring import answer_losses, character_losses
from pe_cli.seeds import seeded
from pe_cli.sources import Source
from pe_cli.stepping import Stepper
from pe_cli.trained import computes, fill, fresh_model
from pe_cli.versions import differences, versions

LOG_EVERY = 10
VALIDATION_WINDOWS = 512
VALIDATION_BATCH = 32
DIVERGED = 3.0
"""A loss above this many times that of uniform guessing, after warm-up, ends the run."""
TRAINING_COLUMNS = ("step", "loss", "learning_rate", "chars_per_second")
VALIDATION_COLUMNS = ("step", "loss", "bits_per_char")


@dataclass(frozen=True)
class Progress:
    """Where a training stands: steps done, mean loss since the last report, speed, seconds to go."""

    step: int
    steps: int
    loss: float
    chars_per_second: float
    seconds_left: float


class Observer(Protocol):
    """Who is told how a training goes."""

    def progress(self, progress: Progress) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass
class Rows:
    """What training.csv and validation.csv hold, and the losses of the next row; part of the checkpoint."""

    training: list[dict[str, int | float]] = field(default_factory=list)
    validation: list[dict[str, int | float]] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)


@dataclass
class Saved:
    """What a checkpoint holds beside its tensors."""

    run: str
    step: NonNegativeInt
    seconds: FiniteFloat
    data_digest: str
    rows: Rows


class Trainer:
    """One run being trained. Logging, validation and saving draw no random numbers and change nothing."""

    def __init__(self, run: Run, experiment: Experiment, corpus: Source, device: torch.device) -> None:
        self.run, self.experiment, self.corpus, self.device = run, experiment, corpus, device
        self.config = experiment.training
        self.model = fresh_model(experiment, corpus.alphabet)
        self.batches = sources.batches(corpus, self.config, experiment.seed)
        self.stepper = Stepper(self.model, self.config, device, seeded(experiment.seed, "ids"))
        self.rows = Rows()
        self.step = 0
        self.clock = Clock()
        # dropout is the only user of the global generator
        torch.manual_seed(seeded(experiment.seed, "dropout").initial_seed())

    def begin(self, warn: Callable[[str], None]) -> None:
        """A new run directory, or the state of the last checkpoint that is whole."""
        if self.run.status != "new" and self.run.has_state:
            self.restore(warn)
            self.go_on(warn)
            return
        self.run.begin(
            to_yaml(self.experiment),
            name=self.experiment.name,
            encoding=self.experiment.encoding["name"],
            seed=self.experiment.seed,
            reason=None,
            step=0,
            train_loss=None,
            validation_loss=None,
            computes=computes(self.experiment),
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            alphabet=self.corpus.alphabet,
            data=self.corpus.name,
            data_hash=self.corpus.data_hash,
            data_digest=self.batches.digest,
            weight_sha256=None,
            **self.made_with(),
            seconds=0.0,
        )

    def made_with(self) -> dict[str, Any]:
        return {
            "device": str(self.device),
            "threads": torch.get_num_threads(),
            "precision": str(self.stepper.dtype).removeprefix("torch."),
            "versions": versions(),
        }

    def go_on(self, warn: Callable[[str], None]) -> None:
        """In the precision that it was begun in, whatever `auto` means here; `warn` is told what else has changed."""
        self.stepper.dtype = choose_precision(self.run.text("precision"), self.device)
        now = self.made_with()
        if changed := differences(self.run.info, now):
            warn(
                f"{self.run.path.name} goes on with other means ({'; '.join(changed)}): the result may differ from "
                "that of a run that was not interrupted, and run.json names those of now"
            )
        self.run.update(status="running", reason=None, **now)

    def train(self, observer: Observer, interrupted: Callable[[], int | None]) -> None:
        """The steps that are left. Raises Interrupted after a signal, with everything saved."""
        config = self.config
        varying = config.length_range is not None or isinstance(self.corpus, TaskData)
        self.stepper.begin(varying, observer.note)
        uniform = math.log(len(self.corpus.alphabet))
        self.clock.start(self.step)
        while self.step < config.steps:
            if (number := interrupted()) is not None:
                self.end("interrupted", f"stopped by a signal after step {self.step}")
                raise Interrupted(
                    f"stopped after step {self.step} of {config.steps}; everything is saved in {self.run.path}",
                    number,
                )
            loss = self.one_step()
            self.step += 1
            limit = DIVERGED * uniform if self.step > config.warmup_steps else sys.float_info.max
            if not loss <= limit:  # nan is not
                self.end("diverged", f"the loss was {loss:.4g} at step {self.step}")
                return
            self.rows.recent.append(loss)
            if self.step % LOG_EVERY == 0 or self.step == config.steps:
                observer.progress(self.log())
            if self.step < config.steps and self.step % config.eval_every == 0:
                self.validate()
            if self.step < config.steps and self.step % config.save_every == 0:
                self.save()
        if not self.rows.validation or self.rows.validation[-1]["step"] != self.step:  # else killed since
            self.validate()
        self.run.save_weights(self.model.state_dict())
        self.end("finished", None)

    def one_step(self) -> float:
        fed, wanted = self.batches.pair()
        self.clock.chars += fed.numel()
        return self.stepper.step(fed, wanted, self.step)

    def log(self) -> Progress:
        """A row of training.csv: the mean loss since the last one."""
        loss = sum(self.rows.recent) / len(self.rows.recent)
        self.rows.recent.clear()
        speed, left = self.clock.speed(self.step, self.config.steps)
        rate = self.config.learning_rate * schedule(self.step - 1, self.config.steps, self.config.warmup_steps)
        self.rows.training.append(dict(zip(TRAINING_COLUMNS, (self.step, loss, rate, speed), strict=True)))
        return Progress(self.step, self.config.steps, loss, speed, left)

    def validate(self) -> None:
        """A row of validation.csv: the loss on held-out windows of the training length, or on fresh instances."""
        if isinstance(self.corpus, TaskData):
            instances = validation_set(self.corpus, VALIDATION_WINDOWS)
            losses = answer_losses(self.model, instances, VALIDATION_BATCH).losses
        else:
            text = Text(len(self.corpus.ids), self.corpus.held_start)
            windows = sampled(text, self.config.length, VALIDATION_WINDOWS)
            losses, _ = character_losses(self.model, self.corpus.ids, windows, VALIDATION_BATCH)
        loss = float(np.concatenate(losses).mean())
        self.rows.validation.append(dict(zip(VALIDATION_COLUMNS, (self.step, loss, loss / math.log(2)), strict=True)))

    def end(self, status: str, reason: str | None) -> None:
        """Save everything, then say how the run ended: the status comes last.

        A divergence is no state to go on from: after a kill in between, the run diverges again at the same step.
        """
        if status == "diverged":
            self.write_tables()
        else:
            self.save()
        if status == "finished":
            self.run.drop_previous()
        losses = {
            "train_loss": self.rows.training[-1]["loss"] if self.rows.training else None,
            "validation_loss": self.rows.validation[-1]["loss"] if self.rows.validation else None,
        }
        self.run.update(
            **losses,
            step=self.step,
            data_digest=self.batches.digest,
            weight_sha256=weight_sha256(self.model.state_dict()),
            seconds=self.clock.total(),
            reason=reason,
            status=status,
        )

    def save(self) -> None:
        """Commit the checkpoint, then the tables that it holds too."""
        batches = self.batches.state()
        tensors = {
            **{f"model.{name}": tensor for name, tensor in self.model.state_dict().items()},
            **{f"optimizer.{name}": tensor for name, tensor in self.stepper.optimizers.state().items()},
            "generator.data": batches["generator"],
            "generator.ids": self.stepper.ids.get_state(),
            "generator.dropout": torch.get_rng_state(),
        }
        if self.device.type == "cuda":
            tensors["generator.dropout.cuda"] = torch.cuda.get_rng_state(self.device)
        saved = Saved(self.run.path.name, self.step, self.clock.total(), batches["digest"], self.rows)
        self.run.save_state(tensors, asdict(saved))
        self.write_tables()

    def write_tables(self) -> None:
        files.write_csv(self.run.path / "training.csv", self.rows.training, TRAINING_COLUMNS)
        files.write_csv(self.run.path / "validation.csv", self.rows.validation, VALIDATION_COLUMNS)

    def restore(self, warn: Callable[[str], None]) -> None:
        """Everything as it was at the last checkpoint. RunError for one that does not belong to this run."""
        tensors, meta = self.run.load_state(warn)
        try:
            saved = TypeAdapter(Saved).validate_python(meta)
            if saved.run != self.run.path.name:
                raise KeyError(f"it is of {saved.run}")
            fill(self.model, under("model.", tensors))
            self.stepper.optimizers.restore(under("optimizer.", tensors))
            self.batches.restore({"generator": tensors["generator.data"], "digest": saved.data_digest})
            self.stepper.ids.set_state(tensors["generator.ids"])
            torch.set_rng_state(tensors["generator.dropout"])
            if self.device.type == "cuda" and "generator.dropout.cuda" in tensors:
                torch.cuda.set_rng_state(tensors["generator.dropout.cuda"], self.device)
            self.rows, self.step, self.clock = saved.rows, saved.step, Clock(saved.seconds)
            self.write_tables()  # a kill may have come between the checkpoint and its tables
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise RunError(
                f"{self.run.path / 'state.safetensors'} does not belong to this run "
                f"({shorten(str(error), 200, placeholder='…')}): train it again with --force"
            ) from None


class Clock:
    """Seconds of training over all its sittings, and the speed of this one; `chars` are fed since the last report."""

    def __init__(self, before: float = 0.0) -> None:
        self.before = before
        self.start(0)

    def start(self, step: int) -> None:
        self.started = self.marked = time.perf_counter()
        self.first, self.chars = step, 0

    def total(self) -> float:
        return self.before + time.perf_counter() - self.started

    def speed(self, step: int, steps: int) -> tuple[float, float]:
        """Characters per second since the last call, and seconds left at the pace of this sitting."""
        now = time.perf_counter()
        recent = self.chars / max(now - self.marked, 1e-9)
        left = (steps - step) * (now - self.started) / max(step - self.first, 1)
        self.marked, self.chars = now, 0
        return recent, left


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
