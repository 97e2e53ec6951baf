"""`pe compare`: plan, run, collect, show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pe_cli import collection, comparison, files, locks, options, reports
from pe_cli.collection import Comparison
from pe_cli.commands import command_line, show
from pe_cli.comparison import Outcome, Plan, Variation
from pe_cli.console import Console
from pe_cli.errors import MOST_LINES, ConfigError, Interrupted, RunError, RunFailed
from pe_cli.execution import Message, execute, prepared
from pe_cli.experiment import Experiment, directory_name
from pe_cli.progress import Display
from pe_cli.signals import interruptible
from pe_cli.versions import machine

QUICK = {
    "training.steps": "60",
    "training.eval_every": "60",
}
"""Tasks are evaluated as ever: their instances are short."""
LENGTHS, WINDOWS, QUICK_WINDOWS = "evaluation.lengths", "evaluation.windows", "8"
QUICK_MAX_LEN = 1024
STOPPED = "interrupted; finished runs are kept, and the same command goes on with the rest"


@dataclass(frozen=True)
class Request:
    """The arguments of `pe compare`."""

    configs: list[str]
    seeds: str | None
    overrides: dict[str, str | int | None]
    max_len: str | None
    lengths: list[str] | None
    strategies: list[str] | None
    protocols: list[str] | None
    name: str | None
    baseline: str | None
    vary: list[str]
    quick: bool
    fail_fast: bool
    keep_going: bool
    out: Path
    device: str
    threads: int | None
    jobs: int | None
    resume: bool
    force: bool
    dry_run: bool
    json: bool
    quiet: bool


class Watching:
    """The runs told to a display; each ended run is a line at once."""

    def __init__(self, display: Display) -> None:
        self.display = display

    def progress(self, message: Message) -> None:
        self.display.update(message.run, message.done, message.total, message.detail)

    def note(self, text: str) -> None:
        self.display.note(text)

    def ended(self, outcome: Outcome) -> None:
        self.display.finish(outcome.planned.directory, line_of(outcome))


def line_of(outcome: Outcome) -> str:
    """The losses of a run, as soon as it is there."""
    name = outcome.planned.directory
    if outcome.evaluated is None:
        return f"{name}: {outcome.status}: {outcome.reason}"
    rows = outcome.evaluated.rows
    strategy = rows["strategy"].iloc[0]
    first = rows[rows["strategy"] == strategy]
    measure = "exact_match" if first["exact_match"].notna().any() else "loss"
    parts = []
    for protocol, part in first.groupby("protocol", sort=False):
        by = f" by {protocol}" if first["protocol"].nunique() > 1 else ""
        values = [
            f"{length}: {value:.3f}" if status == "ok" else f"{length}: {status}"
            for length, value, status in zip(part["length"], part[measure], part["status"], strict=True)
        ]
        parts.append(f"{measure.replace('_', ' ')}{by} at {', '.join(values)}")
    return f"{reports.label(name, strategy)}: {'; '.join(parts)}"


def compare(request: Request) -> None:
    console = Console(request.quiet)
    if request.force and request.resume:
        raise ConfigError("--force begins again and --resume goes on: give one of them")
    configs = comparison.expand(request.configs)
    plan = checked_plan(request, configs)
    name = comparison.default_name(configs, request.quick) if request.name is None else request.name
    try:
        directory_name(name)
        if name == "runs":
            raise ValueError("is taken by the runs themselves: choose another than 'runs'")
    except ValueError as error:
        asked = "the name, after the configs where no --name is given," if request.name is None else "--name:"
        raise ConfigError(f"{asked} {error}") from None
    baseline = comparison.baseline_of(plan.runs, request.baseline)
    settings, jobs = prepared(plan.runs, request.out, request.device, request.threads, request.jobs, request.force)
    for note in [*plan.notes, *(f"left out: {config.reason}" for config in plan.refused)]:
        console.warn(note)
    if request.dry_run:
        show_plan(console, request, plan, settings.root)
        return
    files.writable(settings.root)
    files.writable(request.out / name, collection.FILES)
    with locks.held(settings.root, request.out / name):
        started = time.monotonic()
        with (
            interruptible(console.restore) as received,
            console.display("runs", len(plan.runs)) as display,
        ):
            outcomes = execute(plan.runs, settings, jobs, Watching(display), received, request.fail_fast)
            stopped = received()
        seconds = time.monotonic() - started
        found = collection.collect(outcomes, baseline, plan.refused)
        trained = sum(run["seconds"] or 0.0 for run in found.runs)
        facts = [
            f"made by `{command_line()}` in {seconds / 60:.1f} minutes, {jobs} runs at a time with {settings.threads} "
            f"thread{'s' if settings.threads > 1 else ''} each; trainings took {trained / 60:.1f} minutes in all, and "
            f"what is finished is not trained again; {machine(settings.device)}",
        ]
        report(console, request, found, name, facts)
    if stopped is not None:
        raise Interrupted(STOPPED, stopped)
    bad = [(run.planned.directory, line_of(run)) for run in outcomes if run.status != "finished"]
    bad += [(str(config.config), config.reason) for config in plan.refused]
    bad += [(run, f"{run}: no length could be evaluated: {why}") for run, why in collection.lost(found.rows)]
    if bad:
        raise RunFailed(listed(bad, f"{len(bad)} of {len(found.runs)} runs have no result"))
    if not (found.rows["status"] == "ok").any():
        raise ConfigError(f"no length could be evaluated: {found.rows['reason'].iloc[0]}")


def listed(problems: Sequence[tuple[str, str]], head: str = "") -> str:
    """Names and messages below each other: whole if they are short, else first lines, at the end names alone."""
    first = [head] if head else []
    lines = [*first, *"\n".join(message for _, message in problems).splitlines()]
    if len(lines) > MOST_LINES:
        lines = [*first, *(message.splitlines()[0] for _, message in problems)]
    if len(lines) > MOST_LINES:
        room = MOST_LINES - len(first) - 1
        lines = [*lines[: MOST_LINES - 1], "also: " + ", ".join(name for name, _ in problems[room:])]
    return "\n".join(lines)


def show_plan(console: Console, request: Request, plan: Plan, root: Path) -> None:
    """The directories of the runs, and nothing done."""
    if request.json:
        facts = [
            {
                "name": run.name,
                "config": str(run.config),
                "seed": run.experiment.seed,
                "directory": str(root / run.directory),
            }
            for run in plan.runs
        ]
        console.json({"runs": facts})
        return
    for run in plan.runs:
        console.result(str(root / run.directory))


def report(console: Console, request: Request, found: Comparison, name: str, facts: list[str]) -> None:
    """Write the comparison and show it."""
    folder, title = request.out / name, f"Comparison: {name}"
    collection.write(found, folder, title, facts)
    written = [folder / "comparison.md"]
    try:
        written += collection.draw(found, folder, title)
    except RunError as error:
        console.warn(str(error))
    if request.json:
        console.json(
            {
                "runs": found.runs,
                "rows": reports.records(found.rows),
                "summary": reports.records(found.summary),
            }
        )
        return
    for table in collection.tables(found, facts):
        show(console, table)
        console.result("")
    console.result("\n".join(map(str, written)))


def checked_plan(request: Request, configs: list[Path]) -> Plan:
    """All runs. ConfigError that names every bad config, unless those are to be left out."""
    asked = options.evaluation_overrides(request.lengths, request.strategies, request.protocols)
    overrides = {**(QUICK if request.quick else {}), **options.together(request.overrides, asked)}
    longest = options.longest_length(request.max_len, request.lengths)

    def fitted(experiment: Experiment) -> dict[str, str]:
        trained, up_to, windows = experiment.trained_length, longest, {}
        if request.quick and not experiment.is_task:
            windows = {} if request.overrides.get(WINDOWS) else {WINDOWS: QUICK_WINDOWS}
            if up_to is None and LENGTHS not in overrides:
                up_to = max(QUICK_MAX_LEN, trained)
        lengths = options.lengths_up_to(up_to, trained)
        options.together(overrides, lengths)
        return windows | lengths

    recipes = [comparison.AS_CONFIGURED, *(Variation(*one) for one in options.variations(request.vary))]
    plan = comparison.plan(configs, overrides, fitted, lambda first: options.seed_list(request.seeds, first), recipes)
    if plan.refused and not (request.keep_going and plan.runs):
        raise ConfigError(listed([(str(config.config), config.reason) for config in plan.refused]))
    return plan
