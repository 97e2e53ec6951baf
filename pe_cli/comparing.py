"""`pe compare`: plan, run, collect, show."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from pe_cli import collection, comparison, options, reports, runs
from pe_cli.commands import command_line, show
from pe_cli.comparison import Outcome, Planned
from pe_cli.config import resolve
from pe_cli.console import Console
from pe_cli.devices import choose_device, choose_precision, choose_threads, usable_cores
from pe_cli.errors import ConfigError, Interrupted, RunFailed
from pe_cli.execution import Message, Settings, execute
from pe_cli.progress import Display
from pe_cli.signals import interruptible
from pe_cli.versions import machine

QUICK = {
    "training.steps": "60",
    "training.eval_every": "60",
    "evaluation.windows": "8",
}
QUICK_MAX_LEN = "1024"


@dataclass(frozen=True)
class Request:
    """The arguments of `pe compare`."""

    configs: list[str]
    seeds: str | None
    overrides: dict[str, str | int | None]
    max_len: str | None
    lengths: list[str] | None
    strategies: list[str] | None
    name: str | None
    baseline: str | None
    quick: bool
    fail_fast: bool
    keep_going: bool
    out: Path
    device: str
    threads: int | None
    jobs: int | None
    force: bool
    dry_run: bool
    json: bool
    quiet: bool


class Watching:
    """The runs told to a display; each ended run is a line at once."""

    def __init__(self, display: Display, root: Path) -> None:
        self.display, self.root = display, root

    def progress(self, message: Message) -> None:
        self.display.update(message.run, message.done, message.total, message.detail)

    def note(self, text: str) -> None:
        self.display.note(text)

    def ended(self, outcome: Outcome) -> None:
        self.display.finish(outcome.planned.directory, line_of(outcome))


def line_of(outcome: Outcome) -> str:
    """The losses of a run, as soon as it is there."""
    name = outcome.planned.directory
    if outcome.status != "finished" or outcome.directory is None:
        return f"{name}: {outcome.status}: {outcome.reason}"
    rows = collection.read_rows(outcome.directory / "extrapolation.csv", collection.COLUMNS)
    first = rows[rows["strategy"] == rows["strategy"].iloc[0]]
    losses = [
        f"{length}: {loss:.3f}" if status == "ok" else f"{length}: {status}"
        for length, loss, status in zip(first["length"], first["loss"], first["status"], strict=True)
    ]
    return f"{name}: loss at " + ", ".join(losses)


def compare(request: Request) -> None:
    console = Console(request.quiet)
    device = choose_device(request.device)
    configs = comparison.expand(request.configs)
    planned = checked_plan(request, configs, console)
    baseline = comparison.baseline_name(planned, request.baseline)
    name = request.name or comparison.default_name(configs, request.quick)
    if name == "runs" or "/" in name or name.startswith("."):
        raise ConfigError(f"--name: '{name}' cannot name a comparison; choose another")
    for run in planned:
        choose_precision(run.experiment.training.precision, device)
    jobs = request.jobs or (min(usable_cores(), len(planned)) if device.type == "cpu" else 1)
    threads = choose_threads(request.threads, jobs)
    if request.dry_run:
        for run in planned:
            console.result(str(request.out / "runs" / run.directory))
        return
    root = request.out / "runs"
    runs.writable(root)
    started = time.monotonic()
    with (
        interruptible(console.restore) as received,
        console.display("runs", len(planned)) as display,
    ):
        settings = Settings(root, str(device), threads, request.force)
        watching = Watching(display, root)
        outcomes = execute(planned, settings, jobs, watching, received, request.fail_fast)
        stopped = received()
    seconds = time.monotonic() - started
    facts = [
        f"made by `{command_line()}` in {seconds / 60:.1f} minutes, {jobs} runs at a time with {threads} "
        f"thread{'s' if threads > 1 else ''} each (finished runs are reused); {machine(device)}",
    ]
    report(console, request, outcomes, baseline, name, facts)
    if stopped is not None:
        raise Interrupted("interrupted; finished runs are kept, and the same command goes on with the rest", stopped)
    bad = [outcome for outcome in outcomes if outcome.status != "finished"]
    if bad:
        raise RunFailed(f"{len(bad)} of {len(outcomes)} runs have no result: " + "; ".join(map(line_of, bad[:5])))


def report(
    console: Console,
    request: Request,
    outcomes: list[Outcome],
    baseline: str,
    name: str,
    facts: list[str],
) -> None:
    """Write the comparison and show it."""
    folder = request.out / name
    found = collection.collect(outcomes, baseline)
    collection.write(found, folder, f"Comparison: {name}", facts)
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
    console.result(f"{folder / 'comparison.md'}\n{folder / 'comparison.png'}")


def checked_plan(request: Request, configs: list[Path], console: Console) -> list[Planned]:
    """All runs. ConfigError that names every bad config, unless those are to be left out."""
    first = resolve(configs[0], {}).experiment if len(configs) else None
    overrides = dict(request.overrides)
    if request.quick:
        overrides = {**QUICK, **overrides}
    quick_length = QUICK_MAX_LEN if request.quick and not request.lengths else None
    train_length = first.training.length if first else 128
    overrides.update(
        options.evaluation_overrides(request.max_len or quick_length, request.lengths, request.strategies, train_length)
    )
    seeds = options.seed_list(request.seeds, first.seed if first else 0)
    planned, refused = comparison.plan(configs, seeds, overrides)
    if refused and not (request.keep_going and planned):
        raise ConfigError("\n".join(str(error) for _, error in refused))
    for _, error in refused:
        console.warn(f"left out: {error}")
    return planned
