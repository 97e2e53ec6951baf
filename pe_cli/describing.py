"""What the commands about encodings do, once their arguments are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pe_cli import files, inspection, options, plotting, property_tables, subjects
from pe_cli import properties as measuring
from pe_cli.console import Console
from pe_cli.devices import choose_threads, compute_with
from pe_cli.errors import ConfigError
from pe_cli.inspection_tables import LEFT_OUT, readable
from pe_cli.listing import one_form
from pe_cli.probing import Probe, fresh_probe
from pe_cli.progress import Display
from pe_cli.subjects import Subject
from pe_cli.tables import Column
from pe_cli.trained import open_trained


def inspect(
    encoding: str, length: int | None, at_length: int | None, strategy: str, changes: Mapping[str, str], json: bool
) -> None:
    console = Console()
    subject = subjects.subject(encoding, changes)
    if subject.run is not None:
        what = f"{subject.run.path} is a run, and inspect is for encodings"
        raise ConfigError(f"{what}; pe plot and pe properties show runs")
    tell_width([subject], changes, console)
    if length is not None and at_length is not None:
        console.warn(f"--at-length {at_length} says how many characters are shown, --length {length} is not used")
    [called] = options.strategies_named([strategy])
    facts = inspection.inspect_encoding(
        subject.experiment, inspection.LENGTH if length is None else length, at_length=at_length, strategy=called
    )
    if json:
        console.json(facts)
        return
    tables = readable(facts)
    for table in tables:
        console.table(table.rows, [Column(name, name) for name in table.columns], table.title)
        console.result("")
    if any(LEFT_OUT in text for table in tables for row in table.rows for text in row.values()):
        console.result(f"{LEFT_OUT} stands for what is not shown; --json has all of it")


def properties(
    names: Sequence[str],
    changes: Mapping[str, str],
    fast: bool,
    explain: bool,
    threads: int | None,
    json: bool,
    markdown: bool,
    quiet: bool,
) -> None:
    one_form(json, markdown)
    console = Console(quiet)
    compute_with(choose_threads(threads))
    alone = explain and not names
    for option, value in {"--set": changes, "--fast": fast, "--threads": threads}.items():
        if alone and value:
            raise ConfigError(f"{option}: --explain alone measures nothing; name what is to be measured")
    asked = [] if alone else asked_for(names, changes, console)
    opened = {subject.name: probe_of(subject) for subject in asked if subject.run}  # what is damaged is known at once
    rows = []
    with console.display("encodings", len(asked)) as display:
        for subject in asked:
            probe = opened[subject.name] if subject.run else probe_of(subject)
            rows.append(measured(subject, probe, not fast, display))
    setting, explanations = measuring.setting(), measuring.explanations()
    if json:
        console.json({"rows": rows, **({"setting": setting, "explanations": explanations} if explain else {})})
        return
    if markdown:
        console.result(property_tables.markdown(rows, *((setting, explanations) if explain else ("", {}))).rstrip())
        return
    if rows:
        table = property_tables.table(rows)
        console.table(table.rows, table.columns, table.title, table.notes)
    if explain:
        console.result(("\n" if rows else "") + property_tables.formulas(setting, explanations))


def asked_for(names: Sequence[str], changes: Mapping[str, str], console: Console) -> list[Subject]:
    found, refused = (subjects.named(names, changes), {}) if names else subjects.every(changes)
    if refused:
        console.warn(f"left out: {', '.join(refused)}; the first of them, because: {next(iter(refused.values()))}")
    tell_width(found, changes, console)
    return found


def tell_width(found: Sequence[Subject], changes: Mapping[str, str], console: Console) -> None:
    """What width as many heads have, where nobody set it."""
    if "model.n_heads" in changes and "model.d_model" not in changes and found:
        sizes = found[0].experiment.model
        console.note(f"model.d_model: {sizes.d_model}, so that a head has {sizes.d_model // sizes.n_heads} columns")


def probe_of(subject: Subject) -> Probe:
    if subject.run is None:
        return fresh_probe(subject.experiment)
    return Probe(open_trained(subject.run, torch.device("cpu")).model)


def measured(subject: Subject, probe: Probe, costs: bool, display: Display) -> dict[str, Any]:
    """Whose properties, and what they are."""
    order = list(measuring.PROPERTIES)

    def advance(which: str) -> None:
        display.update(subject.name, order.index(which), len(order), property_tables.words(which))

    found = measuring.measure(probe, costs, advance)
    display.finish(subject.name)
    block = subject.experiment.encoding
    return {
        "encoding": block["name"],
        "run": None if subject.run is None else subject.run.path.name,
        "options": {key: value for key, value in block.items() if key != "name"},
        "train_length": probe.length,
        "properties": found,
    }


def plot(names: Sequence[str], asked: plotting.Options, out: Path | None, json: bool) -> None:
    console = Console()
    if out is not None and out.suffix.lower() not in plotting.SUFFIXES:
        raise ConfigError(f"--out {out}: the name of a picture ends in {' or '.join(plotting.SUFFIXES)}")
    picture = plotting.picture(names, asked)
    path = out or picture.default
    with files.in_directory(path.parent):
        picture.draw(path)
    if json:
        console.json({"pictures": [str(path)], "title": picture.title, "parts": picture.parts, "notes": picture.notes})
    else:
        console.result(str(path))
