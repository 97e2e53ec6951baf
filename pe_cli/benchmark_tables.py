"""The rows of bench.csv as tables: training, then the time and the memory of one window by length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pe_cli.documents import Table
from pe_cli.reports import records
from pe_cli.tables import Column

MIB = 2**20
TRAINING = (
    Column("encoding", "encoding"),
    Column("chars_per_second", "characters/s", ",.0f"),
    Column("seconds", "seconds", ".4f"),
    Column("range", "least … most"),
    Column("times", "times", ".2f"),
    Column("mib", "MiB", ",.0f"),
    Column("fraction", "of matrix products", ".1%"),
)


def tables(rows: Sequence[Mapping[str, Any]], baseline: str, facts: Sequence[str]) -> list[Table]:
    frame = pd.DataFrame(rows)
    frame["mib"] = frame["peak_bytes"].astype(float) / MIB
    trained, asked = (frame[frame["work"] == work] for work in ("training", "evaluation"))
    return [
        training(trained, baseline, facts),
        by_length(asked, f"Seconds of one window by length, and times those of {baseline}", "seconds", baseline),
        by_length(asked, f"Peak memory of one window in MiB by length, and MiB above {baseline}", "mib", baseline),
    ]


def training(rows: pd.DataFrame, baseline: str, facts: Sequence[str]) -> Table:
    length, windows = rows["length"].iloc[0], rows["windows"].iloc[0]
    shown = [
        {
            **row,
            "range": f"{row['seconds_low']:.4f} … {row['seconds_high']:.4f}" if row["status"] == "ok" else None,
        }
        for row in records(rows)
    ]
    notes = [
        f"seconds: median of a step, least and most of them; times: median over turns of the ratio to {baseline}; MiB: "
        "the most memory of one step, besides what was there before; of matrix products: floating-point operations "
        "(6 by entry of a matrix and 12 by layer, column and character of the window, without those of the "
        "encoding) as a share of what this machine does where it only multiplies large matrices",
        *facts,
        *reasons(rows),
    ]
    return Table(f"Steps of training on {windows} windows of {length} characters", TRAINING, shown, notes)


def by_length(rows: pd.DataFrame, title: str, key: str, baseline: str) -> Table:
    """A column for each length, and one that compares the longest with the baseline."""
    lengths = sorted(rows["length"].unique())
    values = rows.astype({key: float}).pivot(index="encoding", columns="length", values=key)
    longest = rows[rows["length"] == lengths[-1]].set_index("encoding")
    timed = key == "seconds"
    against = longest["times"] if timed else longest[key] - longest.loc[baseline, key]
    columns = [
        Column("encoding", "encoding"),
        *(Column(str(length), str(length), ".4f" if timed else ",.0f") for length in lengths),
        Column("against", f"{'times' if timed else 'above'} at {lengths[-1]}", ".2f" if timed else "+,.0f"),
    ]
    shown = [
        {"encoding": name, **{str(length): values.loc[name, length] for length in lengths}, "against": against[name]}
        for name in rows["encoding"].unique()
    ]
    return Table(title, columns, shown, reasons(rows))


def reasons(rows: pd.DataFrame) -> list[str]:
    """One note for each encoding without a value somewhere: the lengths, and the first reason."""
    missing = rows[rows["status"] != "ok"].groupby(["encoding", "status"], sort=False)
    return [
        f"{name}: {status} at {', '.join(map(str, group['length']))}: {group['reason'].iloc[0]}"
        for (name, status), group in missing
    ]
