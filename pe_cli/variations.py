"""The table of a varied comparison: the losses under each recipe, and which orderings of runs survive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import scipy  # its parts load at first use

from pe_cli.documents import Table
from pe_cli.protocols import INSTANCES
from pe_cli.reports import distinct, label, records
from pe_cli.tables import Column

CONFIGURED = "as configured"
MOST_NAMED = 6


def sensitivity(protocol: str, summary: pd.DataFrame, orderings: pd.DataFrame) -> list[Table]:
    """A table at the training length and one at the longest length with a loss; `summary` is of one protocol."""
    with_loss = distinct(summary[summary["loss"].notna()])
    if with_loss.empty:
        return []
    lengths = sorted({int(with_loss["train_length"].min()), int(with_loss["length"].max())})
    chosen = [length for length in lengths if (with_loss["length"] == length).any()]
    return [at(protocol, length, with_loss, orderings[orderings["length"] == length]) for length in chosen]


def at(protocol: str, length: int, summary: pd.DataFrame, orderings: pd.DataFrame) -> Table:
    """Loss, or exact match of a task, and rank of every run under each recipe, the best as configured first."""
    of_task = protocol == INSTANCES
    measure, best = ("exact_match", -1) if of_task else ("loss", 1)
    here = summary[summary["length"] == length]
    recipes = list(dict.fromkeys([*summary["variation"], *orderings["variation"]]))
    rows: dict[str, dict[str, Any]] = {}
    for entry in records(here):
        name = entry["name"].removesuffix(f", {entry['variation']}")
        row = rows.setdefault(label(name, entry["strategy"]), {})
        row[f"value {entry['variation']}"], row[f"rank {entry['variation']}"] = entry[measure], entry["rank"]
    shown = [{"run": run, **row} for run, row in rows.items()]
    shown.sort(key=lambda row: best * row.get("value ", best * math.inf))
    columns = [Column("run", "run")]
    for recipe in recipes:
        columns += [Column(f"value {recipe}", recipe or CONFIGURED, ".3f"), Column(f"rank {recipe}", "rank")]
    notes = [kept(recipe, shown, orderings[orderings["variation"] == recipe]) for recipe in recipes if recipe]
    notes.append(
        "an ordering of two runs counts where it is clear as configured: the 95 % interval of their paired difference "
        "excludes zero; orderings.csv names them all"
    )
    title = f"Under other recipes at {length} characters ({protocol})"
    if of_task:  # whose lengths are no characters
        title = f"Exact match under other recipes at length {length}"
    return Table(title, columns, shown, notes)


def kept(recipe: str, rows: Sequence[dict[str, Any]], orderings: pd.DataFrame) -> str:
    """How many of the clear orderings survive in a recipe, and which do not."""
    both = [
        (row["value "], other) for row in rows if "value " in row and (other := row.get(f"value {recipe}")) is not None
    ]
    known = len(both) > 1 and len(orderings) > 0  # else their order is that of chance
    tau = scipy.stats.kendalltau(*zip(*both, strict=True)).statistic if known else float("nan")
    counts = orderings["verdict"].value_counts()
    words = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in ("same", "unclear", "reversed", "unknown") if verdict in counts
    )
    turned = orderings[orderings["verdict"] == "reversed"]
    pairs = [f"{better} < {worse}" for better, worse in zip(turned["better"], turned["worse"], strict=True)]
    named = f"; reversed: {', '.join(pairs[:MOST_NAMED])}" if pairs else ""
    more = f" and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
    order = f"; Kendall's tau {tau:.2f}" if not math.isnan(tau) else ""
    return f"{recipe}: of {len(orderings)} clear orderings {words or '0 same'}{named}{more}{order}"
