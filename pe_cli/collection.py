"""From the files of finished runs to the files of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pe_cli import files, plots, reports
from pe_cli.comparison import (
    ROW_COLUMNS,
    RUN_COLUMNS,
    SUMMARY_COLUMNS,
    Outcome,
    run_rows,
    summarise,
)
from pe_cli.evaluation import COLUMNS, WINDOW_COLUMNS
from pe_cli.runs import open_run

TEXT_COLUMNS = ("run", "encoding", "positions", "strategy", "protocol", "status", "reason")


@dataclass(frozen=True)
class Comparison:
    """The three tables of a comparison."""

    runs: list[dict[str, Any]]
    rows: pd.DataFrame
    summary: pd.DataFrame


def read_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV of ours: names stay text (`NA` is a name), an empty number is a missing one."""
    numeric = [name for name in columns if name not in TEXT_COLUMNS]
    frame = pd.read_csv(path, keep_default_na=False, na_values={name: [""] for name in numeric})
    return frame[list(columns)].astype({name: str for name in columns if name in TEXT_COLUMNS})


def collect(outcomes: Sequence[Outcome], baseline: str) -> Comparison:
    """Rows and windows of every run that was evaluated, and their summary over seeds."""
    rows, windows = [], []
    for outcome in outcomes:
        if outcome.status != "finished" or outcome.directory is None:
            continue
        name = outcome.planned.experiment.name
        rows.append(read_rows(outcome.directory / "extrapolation.csv", COLUMNS).assign(name=name))
        windows.append(
            read_rows(outcome.directory / "windows.csv", WINDOW_COLUMNS).assign(
                name=name,
                seed=outcome.planned.experiment.seed,
                data_hash=open_run(outcome.directory).info["data_hash"],
            )
        )
    if not rows:
        empty = pd.DataFrame(columns=list(ROW_COLUMNS))
        return Comparison(run_rows(outcomes), empty, pd.DataFrame(columns=list(SUMMARY_COLUMNS)))
    all_rows = pd.concat(rows, ignore_index=True)[list(ROW_COLUMNS)]
    summary = summarise(all_rows, pd.concat(windows, ignore_index=True), baseline)
    return Comparison(run_rows(outcomes), all_rows, summary)


def write(comparison: Comparison, folder: Path, title: str, facts: Sequence[str]) -> None:
    """runs.csv, comparison.csv, summary.csv, comparison.md and comparison.png."""
    folder.mkdir(parents=True, exist_ok=True)
    files.write_csv(folder / "runs.csv", comparison.runs, RUN_COLUMNS)
    files.write_csv(folder / "comparison.csv", reports.records(comparison.rows), ROW_COLUMNS)
    files.write_csv(folder / "summary.csv", reports.records(comparison.summary), SUMMARY_COLUMNS)
    files.write_text(folder / "comparison.md", reports.document(title, tables(comparison, facts)))
    if (comparison.rows["status"] == "ok").any():
        asked = comparison.rows[comparison.rows["status"] != "refused"]
        plots.plot_comparison(asked, folder / "comparison.png", title)


def tables(comparison: Comparison, facts: Sequence[str]) -> list[reports.Table]:
    """The tables of a comparison: loss by length, the longest length in detail, and the runs that did not end well."""
    found = []
    for protocol, rows in comparison.rows.groupby("protocol", sort=False):
        summary = comparison.summary[comparison.summary["protocol"] == protocol]
        found.extend(reports.comparison(str(protocol), rows, summary, facts))
    bad = [run for run in comparison.runs if run["status"] != "finished"]
    return [*found, *([reports.unfinished(bad)] if bad else [])]
