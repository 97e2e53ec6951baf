"""What the tables of an evaluation and of a comparison say: columns and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pe_cli.documents import Table
from pe_cli.protocols import INSTANCES
from pe_cli.tables import Column

PROTOCOLS = {
    "same_targets": (
        "same_targets: windows of every length end at the same places of the held-out text and the same characters "
        "count, so lengths differ in left context alone; gain = loss at the training length - loss, positive where "
        "the extra context helps"
    ),
    "non_overlapping": (
        "non_overlapping: the held-out text is cut into windows of the length and every character counts; longer "
        "windows look better because fewer characters have little context"
    ),
    "sliding": (
        "sliding: windows of the length advance over the held-out text by the stride and each character counts once, "
        "at the end of its window but for the first one; every window counts its ids from the start, so the largest "
        "id is what tells how far beyond the training length a model was taken"
    ),
    INSTANCES: (
        "instances: drawn at every length from a stream of their own; of the shortest there are so few that training "
        "may have had them; the characters of the answer count, each given the right ones before it; exact match: "
        "answers with every such character the likeliest one, which greedy generation would write too, but where ids "
        "or frequencies depend on how long the window is: they are those of the whole one; accuracy: the share of such "
        "characters"
    ),
}


EXTRAPOLATION = (
    Column("strategy", "strategy"),
    Column("protocol", "protocol"),
    Column("length", "length"),
    Column("loss", "loss", ".4f"),
    Column("loss_interval", "95 % interval"),
    Column("gain", "gain", "+.4f"),
    Column("gain_interval", "95 % interval"),
    Column("bits_per_char", "bits/char", ".4f"),
    Column("scored_chars", "scored chars", ","),
    Column("largest_id", "largest id", ".10g"),
    Column("status", "status"),
)


def extrapolation(title: str, rows: Sequence[Mapping[str, Any]], facts: Sequence[str]) -> Table:
    """The table of one run: loss by strategy, protocol and length."""
    shown = [
        {**row, "loss_interval": interval(row, "loss", ".4f"), "gain_interval": interval(row, "gain", "+.4f")}
        for row in rows
    ]
    return Table(title, EXTRAPOLATION, shown, [*facts, *reasons(rows)])


ATTENTION = (
    Column("strategy", "strategy"),
    Column("length", "length"),
    Column("layer", "layer"),
    Column("entropy", "entropy", ".3f"),
    Column("relative_entropy", "/ ln(keys)", ".3f"),
    Column("distance", "distance", ".1f"),
    Column("first", "on the first", ".4f"),
    Column("attended", "in all", ".4f"),
)


def attention(rows: pd.DataFrame, first: int, facts: Sequence[str]) -> Table:
    """Where queries look, by strategy, length and layer: means over heads. `rows` has the columns of attention.csv."""
    keys = ["strategy", "length", "layer"]
    values = [column.key for column in ATTENTION[len(keys) :]]
    means = rows.astype(dict.fromkeys(values, float)).groupby(keys, sort=False)[values].mean().reset_index()
    notes = [
        "entropy of the attention weights in nats, and divided by the logarithm of the number of allowed keys (1: all "
        f"alike); mean distance of what is looked at in characters; weight on the first {first} characters of the "
        "window; the table has the sum of all weights, too",
        "means over heads, windows and the scored characters of same_targets; attention.csv has every head",
        *facts,
    ]
    return Table("Where the scored characters look", ATTENTION, records(means), notes)


def interval(row: Mapping[str, Any], key: str, spec: str) -> str | None:
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return None
    return f"{low:{spec}} … {high:{spec}}"


def block_notes(rows: Sequence[Mapping[str, Any]], windows: int, scored: int) -> list[str]:
    """Of same_targets: where the text could not hold all blocks, and where the training length leaves little context.

    `windows` blocks of `scored` characters were asked for.
    """
    good = [row for row in rows if row["protocol"] == "same_targets" and row["status"] == "ok"]
    fewer = [
        f"same_targets: the second half of the held-out text holds {count // scored} blocks of {scored} scored "
        f"characters, fewer than the {windows} asked for (evaluation.windows)"
        for count in sorted({int(row["scored_chars"]) for row in good})
        if count < windows * scored
    ]
    starved = [
        f"same_targets: at the training length {scored} of {length} characters are scored, the first of them with "
        f"{length - scored} before it, and longer windows gain by that alone; evaluation.scored of {length // 2} or "
        "less leaves each half a window"
        for length in sorted({int(row["train_length"]) for row in good})
        if 2 * scored > length
    ]
    return [*fewer, *starved]


def reasons(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One note for each run and strategy without a loss somewhere: the lengths, and the first reason."""
    found: dict[tuple[str, str], list[int]] = {}
    why: dict[tuple[str, str], str] = {}
    for row in rows:
        if row["status"] != "ok":
            who = label(row["name"], row["strategy"]) if "name" in row else str(row["strategy"])
            found.setdefault((who, row["status"]), []).append(row["length"])
            why.setdefault((who, row["status"]), str(row["reason"]))
    return [
        f"{who}: {status} at {', '.join(map(str, dict.fromkeys(lengths)))}: {why[who, status]}"
        for (who, status), lengths in found.items()
    ]


def comparison(protocol: str, rows: pd.DataFrame, summary: pd.DataFrame, facts: Sequence[str]) -> list[Table]:
    """Loss by length over all runs, then the longest length in detail. `summary` is of this protocol alone."""
    title = f"Loss in nats per character by length ({protocol})"
    first = by_length(title, "loss", summary, [PROTOCOLS[protocol], scope(rows), *facts])
    return [first, longest(protocol, last_with("loss", summary), rows, summary)]


def by_length(title: str, key: str, summary: pd.DataFrame, notes: Sequence[str]) -> Table:
    """The value of `key` for each run and strategy, one column for each length."""
    shown = []
    for (name, strategy), group in summary.groupby(["name", "strategy"], sort=False):
        values = {f"at_{length}": value for length, value in zip(group["length"], group[key], strict=True)}
        shown.append({"run": label(str(name), str(strategy)), "seeds": group["seeds"].max(), **values})
    lengths = [Column(f"at_{length}", str(length), ".3f") for length in sorted(summary["length"].unique())]
    return Table(title, [Column("run", "run"), Column("seeds", "seeds"), *lengths], shown, notes)


def last_with(key: str, summary: pd.DataFrame) -> int:
    """The longest length with a value of `key`; the longest of all where none has one."""
    known = summary[summary[key].notna()]["length"]
    return int((known if len(known) else summary["length"]).max())


LONGEST = (
    Column("rank", "rank"),
    Column("run", "run"),
    Column("loss", "loss", ".3f"),
    Column("loss_interval", "95 % interval"),
    Column("gain", "gain", "+.3f"),
    Column("difference", "difference", "+.3f"),
    Column("difference_interval", "95 % interval"),
    Column("clear", "clearly"),
)
OVER_SEEDS = {"loss_interval": Column("spread", "spread", ".3f"), "clear": Column("seeds_needed", "seeds needed")}
"""Where there are several seeds: further columns, each after another."""
OTHER_TEXT = "of these very characters: on others the losses of all runs would differ"
NEEDED = (
    "spread: standard deviation of the loss over seeds; seeds needed: how many would find a difference of the observed "
    "size in 80 of 100 experiments (paired t-test at 5 %), from a size and a spread that few seeds tell roughly"
)


def longest(protocol: str, length: int, rows: pd.DataFrame, summary: pd.DataFrame) -> Table:
    """The longest length with a loss: loss, gain over the training length, paired difference to the baseline."""
    gains = rows[rows["length"] == length].groupby(["name", "strategy"])["gain"].mean()
    table = []
    for entry in records(summary[summary["length"] == length].sort_values("loss")):
        table.append(
            {
                **entry,
                "run": label(entry["name"], entry["strategy"]),
                "gain": None if entry["loss"] is None else gains.get((entry["name"], entry["strategy"])),
                "loss_interval": interval(entry, "loss", ".3f"),
                "difference_interval": interval(entry, "difference", "+.3f"),
            }
        )
    several = several_seeds(summary)
    columns = list(LONGEST)
    for after, column in OVER_SEEDS.items() if several else ():
        columns.insert([column.key for column in columns].index(after) + 1, column)
    notes = [
        f"gain: loss at the training length - loss at {length}; {differences(length, summary)}",
        "rank: 1 + the number of runs that are clearly better by the same rule, taken for every pair of runs without "
        "a correction for their number; runs that no other one beats clearly share the first",
        scope(rows[rows["length"] == length]),
        f"intervals: over seeds (Student's t; one seed has none), {OTHER_TEXT}"
        if several
        else "intervals: over windows, one seed",
        *([NEEDED] if several else []),
        *reasons(records(rows[rows["status"] != "refused"])),
    ]
    unranked = [entry["run"] for entry in table if entry["loss"] is not None and entry["rank"] is None]
    if unranked:
        notes.append(
            f"no rank: {', '.join(unranked)}: scored on other characters than most, or a seed diverged, and the mean "
            "of the others would flatter the run"
        )
    return Table(f"At {length} characters ({protocol})", columns, table, notes)


def differences(length: int, summary: pd.DataFrame) -> str:
    """From what differences are taken, or why there are none."""
    baseline, there = summary["baseline"].iloc[0], summary[(summary["length"] == length) & summary["loss"].notna()]
    if baseline not in [label(*run) for run in zip(there["name"], there["strategy"], strict=True)]:
        return f"no differences: {baseline} has no loss at {length}, and --baseline names another run"
    return (
        f"difference: loss - loss of {baseline}, on the same characters at the same seed; clearly better or worse: its "
        "95 % interval excludes zero"
    )


def several_seeds(summary: pd.DataFrame) -> bool:
    """Whether intervals are over seeds."""
    return bool((summary["seeds"] > 1).any())


def label(name: str, strategy: str) -> str:
    return name if strategy == "none" else f"{name} + {strategy}"


def distinct(entries: pd.DataFrame) -> pd.DataFrame:
    """One entry of those of a run that are alike to the last digit: a strategy that changed nothing is no other run."""
    return entries[~entries.duplicated(["name", "length", "protocol", "loss"])]


def scope(rows: pd.DataFrame) -> str:
    """What the losses are of: how many characters, after which training, with which ids."""
    good = rows[rows["status"] == "ok"]
    scored = ", ".join(f"{count:,}" for count in sorted(good["scored_chars"].unique()))
    largest = f"{good['largest_id'].max():.10g}" if len(good) else "-"
    trained = ", ".join(map(str, sorted(rows["train_length"].unique())))
    return (
        f"scored characters: {scored or 0}; training length: {trained}; largest position id given to a model: {largest}"
    )


def unfinished(runs: Sequence[Mapping[str, Any]]) -> Table:
    columns = [Column(key, key) for key in ("name", "seed", "status", "reason", "config")]
    return Table("Runs without a result", columns, runs)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain dictionaries: a missing value is None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
