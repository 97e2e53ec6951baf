"""What each command does, once its arguments are read."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch

from pe_cli import attended, extrapolation, options, runs, sampling, sources
from pe_cli.config import Experiment, resolve, to_yaml, training_identity, with_evaluation
from pe_cli.console import Console
from pe_cli.devices import choose_device, choose_precision, choose_threads, compute_with, has_bfloat16_units
from pe_cli.documents import Table
from pe_cli.errors import ConfigError, Interrupted, RunError, RunFailed
from pe_cli.lengths import short_validation, skipping
from pe_cli.optimizers import parameter_groups
from pe_cli.progress import Display
from pe_cli.runs import Run
from pe_cli.signals import interruptible
from pe_cli.single import train_run, training_detail
from pe_cli.text_evaluation import TextEvaluation
from pe_cli.trained import fresh_model, open_trained
from pe_cli.training import Progress


class Shown:
    """A training told to a display."""

    def __init__(self, key: str, display: Display) -> None:
        self.key, self.display = key, display

    def progress(self, progress: Progress) -> None:
        detail = training_detail(progress)
        self.display.update(self.key, progress.step, progress.steps, detail, progress.seconds_left)

    def note(self, text: str) -> None:
        self.display.note(text)


def train(
    config: Path | None,
    overrides: Mapping[str, str | int | None],
    out: Path,
    device: str,
    threads: int | None,
    resume: bool,
    force: bool,
    dry_run: bool,
    json: bool,
    quiet: bool,
) -> None:
    console = Console(quiet)
    place = choose_device(device)
    resolved = resolve(config, overrides)
    experiment = resolved.experiment
    precision = choose_precision(experiment.training.precision, place)
    corpus = sources.load(experiment.data)
    sources.check_length(corpus, experiment.training.longest, experiment.training.longest_key)
    for note in short_validation(sources.extent(corpus), experiment.training):
        console.warn(note)
    identity = training_identity(experiment, corpus.data_hash)
    name = runs.run_directory_name(experiment.name, identity, experiment.seed)
    if dry_run:
        show_plan(console, experiment, to_yaml(resolved), out / "runs" / name, corpus.alphabet, json)
        return
    if precision == torch.bfloat16 and not has_bfloat16_units(place):
        console.warn(f"training.precision: {place} has no units for bfloat16; float32 is quicker here")
    compute_with(choose_threads(threads))
    run = runs.create(out / "runs", experiment.name, identity, experiment.seed, force=force, resume=resume)
    runs_before = run.status
    if runs_before == "new":
        kind = str(precision).removeprefix("torch.")
        console.note(f"training {name} on {place} in {kind}, threads: {torch.get_num_threads()}")
    else:
        console.note(f"{run.path} is {runs_before}" + ended_advice(runs_before))
    with (
        interruptible(console.restore) as received,
        console.display() as display,
    ):
        try:
            runs.point_latest(run)
        except RunError:
            with suppress(OSError):  # one that has begun before is not empty
                run.path.rmdir()
            raise
        try:
            run = train_run(run, experiment, corpus, place, Shown(name, display), received)
        except RunFailed as error:
            if isinstance(error.__cause__, RunError):  # a disk that is full, and not the experiment
                raise RunFailed(f"{error}; once that is mended, the same command with --resume goes on") from error
            raise
        except Interrupted as stop:
            raise Interrupted(f"{stop}: the same command with --resume goes on", stop.exit_code - 128) from None
    if json:
        console.json({**run.info, "directory": str(run.path)})
    else:
        console.result(f"{run.path}\n{verdict(run)}")
    if run.status != "finished":
        raise RunFailed(f"{run.path}: {run.status}: {run.info.get('reason')}")


def ended_advice(status: str) -> str:
    return "; --force trains it again" if status in runs.OVER else ": going on"


def verdict(run: Run) -> str:
    if run.info.get("validation_loss") is None:
        return f"{run.status} after step {run.number('step')}"
    loss = run.number("validation_loss")
    bits = loss / math.log(2)
    return f"validation loss {loss:.4f} nats per character ({bits:.4f} bits), {run.number('seconds'):.0f} s"


def show_plan(console: Console, experiment: Experiment, text: str, directory: Path, alphabet: str, json: bool) -> None:
    """What `pe train` would do: the experiment, the directory, and which parameter is trained how."""
    model = fresh_model(experiment, alphabet)
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = {
        group: [names[parameter] for parameter in parameters]
        for group, parameters in parameter_groups(model, experiment.training.optimizer).items()
    }
    total = sum(parameter.numel() for parameter in model.parameters())
    if json:
        console.json(
            {
                "experiment": experiment.model_dump(mode="json"),
                "directory": str(directory),
                "parameters": total,
                "groups": groups,
            }
        )
        return
    console.result(f"{text.rstrip()}\n\ndirectory: {directory}\nparameters: {total:,}")
    for group, members in groups.items():
        console.result(f"{group}: {', '.join(members) or 'nothing'}")


def find_run(run: Path | None, root: Path, console: Console) -> Run:
    """The run named, or the newest, which is then said."""
    if run is not None:
        return runs.open_run(run, root)
    found = runs.newest(root)
    console.note(f"run: {found.path}")
    return found


def extrapolate(
    run: Path | None,
    max_len: str | None,
    lengths: list[str] | None,
    strategy: list[str] | None,
    protocol: list[str] | None,
    attention: bool,
    data: str | None,
    changes: Mapping[str, str],
    out: Path,
    device: str,
    threads: int | None,
    json: bool,
    quiet: bool,
) -> None:
    console = Console(quiet)
    place = choose_device(device)
    compute_with(choose_threads(threads))
    longest = options.longest_length(max_len, lengths)
    found = find_run(run, out / "runs", console)
    trained = open_trained(found, place)
    asked = options.evaluation_overrides(options.several(lengths), options.several(strategy), options.several(protocol))
    asked |= options.lengths_up_to(longest, trained.experiment.trained_length)
    settings = with_evaluation(trained.experiment, options.together(changes, asked)).evaluation
    evaluation = extrapolation.open_evaluation(trained, settings, data)
    watched = evaluation if attention and isinstance(evaluation, TextEvaluation) else None
    if attention and watched is None:
        raise ConfigError(f"--attention: it is measured in windows of a text, and {evaluation.corpus.name} has none")
    for note in skipping(sources.extent(evaluation.corpus), evaluation.settings):
        console.warn(note)
    planned = evaluation.planned_chars()
    if watched is not None:
        planned["attention"] = attended.planned_chars(watched)
    feeds = [f"{name} feeds {chars:,} characters" for name, chars in planned.items()]
    total, fed = sum(planned.values()), 0
    written = []
    with runs.alone(found):
        console.note(f"evaluating: {', '.join(feeds)}")
        with interruptible(console.restore) as received, console.display() as display:

            def advance(chars: int) -> None:
                nonlocal fed
                fed += chars
                if (number := received()) is not None:
                    raise Interrupted("interrupted; nothing was written, the run itself is untouched", number)
                display.update(found.path.name, fed, total, "evaluating")

            tables = evaluation.run(advance)
            evaluated = any(row["status"] == "ok" for row in tables.extrapolation)
            looked = attended.measure(watched, advance) if watched is not None and evaluated else None
        if evaluated:  # else the tables of an earlier evaluation are worth more
            written += extrapolation.write(evaluation, tables, console.warn)
        if watched is not None and looked is not None:
            written += extrapolation.write_attention(watched, looked, console.warn)
    if json:
        more = {} if looked is None else {"attention": looked.rows}
        console.json({"run": found.path.name, "rows": tables.extrapolation, **more})
    else:
        shown = extrapolation.reported(evaluation, tables)
        if watched is not None and looked is not None:
            shown.append(extrapolation.report_attention(watched, looked))
        for number, table in enumerate(shown):
            if number:
                console.result("")
            show(console, table)
        console.result("\n".join(["", *map(str, written)]))
    if not evaluated:
        why = next(row["reason"] for row in tables.extrapolation)
        raise ConfigError(f"no length could be evaluated: {why}")


def show(console: Console, table: Table) -> None:
    console.table(table.rows, table.columns, table.title, table.notes)


def config(config: Path | None, overrides: Mapping[str, str | int | None], json: bool) -> None:
    console = Console()
    resolved = resolve(config, overrides)
    if json:
        console.json({"experiment": resolved.experiment.model_dump(mode="json"), "origins": resolved.origins})
    else:
        console.result(to_yaml(resolved).rstrip())


def sample(
    run: Path | None,
    prompt: str | None,
    chars: int,
    temperature: float,
    greedy: bool,
    seed: int,
    out: Path,
    device: str,
    json: bool,
) -> None:
    console = Console()
    found = find_run(run, out / "runs", console)
    trained = open_trained(found, choose_device(device))

    def cut(why: str, length: int) -> None:
        console.note(f"{why}: from now on the model sees the last {length} characters")

    text, stopped = "", None
    try:
        for character in sampling.sample(trained, prompt, chars, temperature, greedy, seed, cut):
            text += character
    except RunFailed as error:
        if not text:
            raise
        stopped = error  # raised once what there is has been shown
    start = prompt if prompt is not None else sampling.default_prompt(trained.alphabet)
    if json:
        why = None if stopped is None else str(stopped)
        console.json({"run": found.path.name, "prompt": start, "text": text, "seed": seed, "stopped": why})
    else:
        console.result(start + text)
    if stopped is not None:
        raise RunFailed(f"{found.path}: the text stops after {len(text)} of {chars} characters: {stopped}")


def command_line() -> str:
    """The command as it was typed, for the files that it writes."""
    return shlex.join(["pe", *sys.argv[1:]])
