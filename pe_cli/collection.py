"""From the files of finished runs to the files of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pe_cli import answer_tables, files, plots, reports, samplers, strategies, variations
from pe_cli.comparison import ROW_COLUMNS, RUN_COLUMNS, Baseline, Outcome, Refused, run_rows
from pe_cli.documents import Table, document
from pe_cli.protocols import INSTANCES
from pe_cli.summary import ORDERING_COLUMNS, SUMMARY_COLUMNS, Varied, orderings, summarise


@dataclass(frozen=True)
class Comparison:
    """The three tables of a comparison, and notes on them."""

    runs: list[dict[str, Any]]
    rows: pd.DataFrame
    summary: pd.DataFrame
    notes: Sequence[str] = ()
    orderings: pd.DataFrame | None = None
    """Where a comparison is varied: which orderings of its runs survive."""


def collect(outcomes: Sequence[Outcome], baseline: Baseline, refused: Sequence[Refused] = ()) -> Comparison:
    """Rows and windows of every run that was evaluated, and their summary over seeds."""
    rows, windows = [], []
    notes: dict[str, None] = {}
    for outcome in outcomes:
        if outcome.evaluated is None:
            continue
        name, evaluation = outcome.planned.name, outcome.planned.experiment.evaluation
        rows.append(outcome.evaluated.rows.assign(name=name))
        notes.update(
            dict.fromkeys(reports.block_notes(reports.records(rows[-1]), evaluation.windows, evaluation.scored))
        )
        used = list(rows[-1]["strategy"].unique())
        notes.update(dict.fromkeys(strategies.left_out(name, evaluation.strategies, used)))
        notes.update(dict.fromkeys(samplers.notes(outcome.planned.experiment.positions)))
        windows.append(outcome.evaluated.windows.assign(name=name, seed=outcome.planned.experiment.seed))
    runs = run_rows(outcomes, refused)
    if not rows:
        return Comparison(runs, pd.DataFrame(columns=list(ROW_COLUMNS)), pd.DataFrame(columns=list(SUMMARY_COLUMNS)))
    all_rows = pd.concat(rows, ignore_index=True)[list(ROW_COLUMNS)]
    all_windows = pd.concat(windows, ignore_index=True)
    varied = variants(outcomes, baseline.name)
    summary = summarise(all_rows, all_windows, baseline.name, diverged(runs), varied, baseline.strategy)
    several = any(variant.variation for variant in varied.values())
    kept = orderings(summary, all_windows, varied) if several else None
    return Comparison(runs, all_rows, summary, list(notes), kept)


def variants(outcomes: Sequence[Outcome], baseline: str) -> dict[str, Varied]:
    """For each name, the name as configured, the variation, and the baseline in that variation, if it is there."""
    planned = [outcome.planned for outcome in outcomes]
    baselines = {run.variation: run.name for run in planned if run.base == baseline}
    return {run.name: Varied(run.base, run.variation, baselines.get(run.variation, "")) for run in planned}


def diverged(runs: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names of which a seed diverged in training."""
    return {run["name"] for run in runs if run["status"] == "diverged"}


def lost(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """The run directories that failed at every length that could be tried, each with its first reason."""
    failures = ("out_of_memory", "diverged")
    return [
        (str(run), str(group[group["status"].isin(failures)]["reason"].iloc[0]))
        for run, group in rows.groupby("run", sort=False)
        if not (group["status"] == "ok").any() and group["status"].isin(failures).any()
    ]


FILES = (
    "runs.csv", "comparison.csv", "summary.csv", "orderings.csv", "comparison.md", "comparison.png",
    "comparison-tasks.png",
)  # fmt: skip
"""All that may be written into the directory of a comparison."""


def write(comparison: Comparison, folder: Path, title: str, facts: Sequence[str]) -> None:
    """The tables of FILES. comparison.md is there only while all of them are of one comparison, and comes last."""
    for name in ("comparison.md", "comparison.png", "comparison-tasks.png"):
        files.remove(folder / name)
    files.write_csv(folder / "runs.csv", comparison.runs, RUN_COLUMNS)
    files.write_csv(folder / "comparison.csv", reports.records(comparison.rows), ROW_COLUMNS)
    files.write_csv(folder / "summary.csv", reports.records(comparison.summary), SUMMARY_COLUMNS)
    if comparison.orderings is None:
        files.remove(folder / "orderings.csv")  # an older one would be of recipes that are not here
    else:
        files.write_csv(folder / "orderings.csv", reports.records(comparison.orderings), ORDERING_COLUMNS)
    files.write_text(folder / "comparison.md", document(title, tables(comparison, facts)))


def draw(comparison: Comparison, folder: Path, title: str) -> list[Path]:
    """comparison.png, where there is a loss to draw. RunError where it cannot be drawn: the tables are there.

    Where some runs are of texts and others of tasks, the latter are in comparison-tasks.png. Of a varied comparison
    the runs as configured are drawn; all recipes in one picture could not be told apart.
    """
    varied = [run["name"] for run in comparison.runs if run.get("variation")]
    drawn = with_effect(comparison.rows[~comparison.rows["name"].isin(varied)])
    title = f"{title}, as configured" if varied else title
    of_tasks = drawn["protocol"] == INSTANCES
    parts = {"comparison.png": drawn[~of_tasks], "comparison-tasks.png": drawn[of_tasks]}
    if of_tasks.all():
        parts = {"comparison.png": drawn, "comparison-tasks.png": drawn[:0]}
    pictures = []
    for name, rows in parts.items():
        picture = folder / name
        if (rows["status"] == "ok").any():
            plots.plot_comparison(rows, picture, title, diverged(comparison.runs))
            pictures.append(picture)
    return pictures


def with_effect(rows: pd.DataFrame) -> pd.DataFrame:
    """Without the strategies that are refused or have no loss beyond the training length: up to it they repeat the
    run's own, and are kept where there is nothing else of a run."""
    beyond, ok = rows["length"] > rows["train_length"], rows["status"] == "ok"
    keys = [rows["name"], rows["strategy"]]
    has_loss = (beyond & ok).groupby(keys).transform("any")
    refused = rows["status"].eq("refused").groupby(keys).transform("any")
    kept = (rows["strategy"] == "none") | (has_loss & ~refused)
    return rows[kept | ~kept.groupby(rows["name"]).transform("any")]


def tables(comparison: Comparison, facts: Sequence[str]) -> list[Table]:
    """The tables of a comparison: loss by length, the longest length in detail, and the runs that did not end well."""
    found = []
    acting = comparison.summary.merge(with_effect(comparison.rows)[["name", "strategy"]].drop_duplicates())
    for protocol, rows in comparison.rows.groupby("protocol", sort=False):
        summary = acting[acting["protocol"] == protocol]
        configured = summary[summary["variation"] == ""]
        if len(configured):
            own = rows[rows["name"].isin(configured["name"])]
            about = [*comparison.notes, *facts]
            if protocol == INSTANCES:
                found.extend(answer_tables.comparison(own, configured, about))
            else:
                found.extend(reports.comparison(str(protocol), own, configured, about))
        if comparison.orderings is not None:
            kept = comparison.orderings[comparison.orderings["protocol"] == protocol]
            found.extend(variations.sensitivity(str(protocol), summary, kept))
    bad = [run for run in comparison.runs if run["status"] != "finished"]
    return [*found, *([reports.unfinished(bad)] if bad else [])]
