"""What the tables say of tasks: answers that are right, in whole and by character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pe_cli.documents import Table
from pe_cli.protocols import INSTANCES
from pe_cli.reports import PROTOCOLS, by_length, interval, label, last_with, reasons, records, scope, several_seeds
from pe_cli.tables import Column

RUN = (
    Column("strategy", "strategy"),
    Column("length", "length"),
    Column("exact_match", "exact match", ".3f"),
    Column("exact_match_interval", "95 % interval"),
    Column("accuracy", "accuracy", ".3f"),
    Column("accuracy_interval", "95 % interval"),
    Column("loss", "loss", ".4f"),
    Column("loss_interval", "95 % interval"),
)
MARGIN = (Column("margin", "margin", "+.2f"), Column("margin_interval", "95 % interval"))
ENDING = (
    Column("scored_chars", "scored chars", ","),
    Column("largest_id", "largest id", ".10g"),
    Column("status", "status"),
)
LONGEST = (
    Column("rank", "rank"),
    Column("run", "run"),
    Column("exact_match", "exact match", ".3f"),
    Column("exact_match_interval", "95 % interval"),
    Column("accuracy", "accuracy", ".3f"),
    Column("accuracy_interval", "95 % interval"),
    Column("loss", "loss", ".3f"),
)
FORMATS = {"exact_match": ".3f", "accuracy": ".3f", "loss": ".4f", "margin": "+.2f"}


def extrapolation(title: str, rows: Sequence[Mapping[str, Any]], facts: Sequence[str]) -> Table:
    """The table of one run on a task, by strategy and length."""
    margin = MARGIN if any(row["margin"] is not None for row in rows) else ()
    about = ["margin: log-likelihood of the right answer - that of a decoy, in nats"] if margin else []
    return Table(title, (*RUN, *margin, *ENDING), with_intervals(rows), [*facts, *about, *reasons(rows)])


def by_depth(windows: pd.DataFrame) -> list[Table]:
    """Exact match, then margin, by depth and length of one strategy after the other, from the rows of windows.csv."""
    tables = []
    note = "depth: where the key stands in the text, 0 at the beginning and 1 at the end; instances in a cell: "
    placed = windows[windows["depth"].notna()]
    placed = placed.assign(exact=placed["right_chars"] == placed["scored_chars"], margin=placed["margin"].astype(float))
    cells = placed.groupby(["strategy", "depth", "length"]).size()
    for strategy, part in placed.groupby("strategy", sort=False):
        for key, called, form in (("exact", "Exact match", ".2f"), ("margin", "Margin in nats", "+.2f")):
            means = part.pivot_table(index="depth", columns="length", values=key, aggfunc="mean")
            columns = [Column("depth", "depth", ".2f"), *(Column(str(length), str(length), form) for length in means)]
            rows = [{"depth": depth, **dict(zip(map(str, means), row, strict=True))} for depth, row in
                    zip(means.index, means.to_numpy(), strict=True)]  # fmt: skip
            facts = [f"{note}{cells.min()} to {cells.max()}"]
            tables.append(Table(f"{called} by depth and length ({strategy})", columns, rows, facts))
    return tables


def comparison(rows: pd.DataFrame, summary: pd.DataFrame, facts: Sequence[str]) -> list[Table]:
    """Exact match by length over all runs, then the longest length in detail. `summary` is of tasks alone."""
    notes = [PROTOCOLS[INSTANCES], scope(rows), *facts]
    first = by_length("Exact match by length", "exact_match", summary, notes)
    return [first, longest(last_with("exact_match", summary), rows, summary)]


def longest(length: int, rows: pd.DataFrame, summary: pd.DataFrame) -> Table:
    """The longest length with answers."""
    here = summary[summary["length"] == length]
    at_length = records(here.sort_values(["exact_match", "loss"], ascending=[False, True]))
    table = [{**entry, "run": label(entry["name"], entry["strategy"])} for entry in at_length]
    several = several_seeds(summary)
    clear = "the 95 % interval of the paired difference excludes zero" if several else "McNemar's exact test, at 5 %"
    notes = [
        f"rank: 1 + the number of runs whose answers are clearly more often right: {clear}; runs that no other one "
        "beats clearly share the first",
        "intervals: over seeds (Student's t)" if several else "intervals: over instances, one seed",
        *reasons(records(rows[rows["status"] != "refused"])),
    ]
    return Table(f"At length {length}", LONGEST, with_intervals(table), notes)


def with_intervals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**row, **{f"{key}_interval": interval(row, key, form) for key, form in FORMATS.items() if f"{key}_low" in row}}
        for row in rows
    ]
