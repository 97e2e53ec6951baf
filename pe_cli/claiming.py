"""`pe claims`: read the files, run what they need, judge, show."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pe_cli import claim_tables, claims, comparison, files, locks, verdicts
from pe_cli.claims import Claim
from pe_cli.commands import command_line, show
from pe_cli.comparing import STOPPED, Watching, listed
from pe_cli.console import Console
from pe_cli.errors import ConfigError, Interrupted, RunFailed
from pe_cli.execution import execute, prepared
from pe_cli.signals import interruptible
from pe_cli.verdicts import Result
from pe_cli.versions import machine

DEFAULT = Path("configs/claims")


LONGEST_NAME = 200
"""Bytes: file systems take 255, and the names of temporaries are longer."""


@dataclass(frozen=True)
class Request:
    """The arguments of `pe claims`."""

    files: list[str]
    seeds: str | None
    overrides: Mapping[str, str]
    out: Path
    device: str
    threads: int | None
    jobs: int | None
    dry_run: bool
    json: bool
    quiet: bool


def check(request: Request) -> None:
    console = Console(request.quiet)
    paths = files_of(request)
    name = name_of(request, paths)
    found, wrong = claims.found(paths, request.seeds, request.overrides)
    if wrong:
        raise ConfigError(listed([(text.partition(":")[0], text) for text in wrong]))
    planned = {run.directory: run for claim in found for run in claim.planned}
    settings, jobs = prepared(planned.values(), request.out, request.device, request.threads, request.jobs)
    for note in dict.fromkeys(note for claim in found for note in claim.notes):
        console.warn(note)
    if request.dry_run:
        show_plan(console, request, found, settings.root)
        return
    files.writable(settings.root)
    files.writable(request.out, claim_tables.written_as(name))
    started = time.monotonic()
    results: list[Result] = []
    written: list[Path] = []
    with (
        locks.held(settings.root, request.out / name),
        interruptible(console.restore) as received,
        console.display("runs", sum(len(claim.planned) for claim in found)) as display,
    ):

        def advance(chars: int) -> None:
            if (number := received()) is not None:
                raise Interrupted("interrupted while a run was asked", number)

        watching = Watching(display)
        for number, claim in enumerate(found, start=1):
            outcomes = execute(claim.planned, settings, jobs, watching, received)
            if received() is not None:
                break
            try:
                results.append(verdicts.judge(claim, outcomes, settings.device, advance))
            except Interrupted:
                break
            minutes = (time.monotonic() - started) / 60
            facts = [
                f"Made by `{command_line()}` in {minutes:.1f} minutes, {jobs} at a time with {settings.threads} "
                f"thread{'s' if settings.threads > 1 else ''} each; runs that were there already are not trained "
                f"again; {machine(settings.device)}."
            ]
            written = claim_tables.write(results, len(found) - number, request.out, name, facts)
            console.note(f"{claim.name}: {results[-1].verdict}")
        stopped = received()
    report(console, request, results, len(found) - len(results), written)
    if stopped is not None:
        raise Interrupted(STOPPED, stopped)
    bad = {run.planned.directory: run for result in results for run in result.outcomes if run.status != "finished"}
    if bad:
        problems = [(name, f"{name}: {run.status}: {run.reason}") for name, run in bad.items()]
        raise RunFailed(listed(problems, f"{len(bad)} of {len(planned)} runs have no result"))


def files_of(request: Request) -> list[Path]:
    """The claim files that are asked for: all of `configs/claims`, where none is named."""
    if request.files:
        return comparison.expand(request.files)
    found = sorted(DEFAULT.glob("*.yaml"))
    if not found:
        raise ConfigError(f"there is no claim file {DEFAULT / '*.yaml'} in {Path.cwd()}; name one: pe claims FILE")
    return found


def name_of(request: Request, files: Sequence[Path]) -> str:
    """`claims`, and where files are named one of their own: the verdicts on some do not replace those on all."""
    name = f"claims-{comparison.default_name(files, quick=False)}" if request.files else "claims"
    if len(name.encode()) > LONGEST_NAME:
        raise ConfigError(f"the claim files name the tables, and {name} is too long: name fewer files, or rename them")
    return name


def show_plan(console: Console, request: Request, found: list[Claim], root: Path) -> None:
    """The directories of the runs, and nothing done."""
    plan: list[dict[str, Any]] = [
        {
            "name": claim.name,
            "file": str(claim.path),
            "runs": [
                {"name": run.name, "seed": run.experiment.seed, "directory": str(root / run.directory)}
                for run in claim.planned
            ],
        }
        for claim in found
    ]
    if request.json:
        console.json(plan)
        return
    for path in dict.fromkeys(run["directory"] for claim in plan for run in claim["runs"]):
        console.result(path)


def report(console: Console, request: Request, results: list[Result], left: int, written: list[Path]) -> None:
    if request.json:
        console.json([verdicts.record(result) for result in results])
        return
    for result in results:
        show(console, claim_tables.inequalities(result))
        console.result("")
    if results:
        show(console, claim_tables.verdicts_of(results, left))
        console.result("\n".join(["", *map(str, written)]))
