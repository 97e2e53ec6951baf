"""Every task with eight encodings, three seeds: how often answers are right, up to four times the trained length.

    python tests/experiments/tasks.py

Each task is one comparison in results/tasks, made by the command line with configs/tasks-by-encoding. What is finished
is not trained again. results/tasks/tasks.md has the answers to all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd

from pe_cli import tasks
from pe_cli.documents import Table, document
from pe_cli.reports import label
from pe_cli.tables import Column

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "results/tasks"
SEEDS = "3"
ABLE = 0.6
"""The exact match above which an encoding has learned a task. Guesses are right in half of the instances of parity."""
HARD = {
    "addition": ["data.max_length=3", "data.order=least_first", "training.steps=1500"],
    "associative_recall": ["data.max_length=6", "data.key_letters=1", "training.steps=1000"],
}
"""Settings of the tasks that nobody learns at the default sizes in 400 steps."""


def compared(task: str) -> list[str]:
    """The command for one task, at the lengths that it has by default."""
    configs = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "configs/tasks-by-encoding").glob("*.yaml"))
    asked = ["--data", f"task:{task}", "--seeds", SEEDS, "--baseline", "rope"]
    asked += [word for setting in HARD.get(task, []) for word in ("--set", setting)]
    command = [sys.executable, "-m", "pe_cli", "compare", *configs, *asked]
    return [*command, "--name", task, "--out", "results/tasks", "--quiet"]


def overview(there: list[str]) -> Table:
    """Exact match at the trained length and at twice that length, by run and task."""
    cells: dict[str, dict[str, str]] = {}
    for task in there:
        summary = pd.read_csv(FOLDER / task / "summary.csv")
        trained = summary["train_length"].iloc[0]
        for (name, strategy), group in summary.groupby(["name", "strategy"], sort=False):
            found = group.set_index("length")["exact_match"]
            pair = [f"{found[length]:.2f}" if pd.notna(found[length]) else "-" for length in (trained, 2 * trained)]
            cells.setdefault(label(str(name), str(strategy)), {})[task] = " → ".join(pair)
    columns = [Column("run", "run"), *(Column(task, task.replace("_", " ")) for task in there)]
    rows = [{"run": run, **found} for run, found in cells.items()]
    notes = [
        f"means over {SEEDS} seeds; below, in brackets, their 95 % intervals over seeds (Student's t, within 0 and 1): "
        "of these very instances, which are the same for every seed, so that a run with one answer to all has no width"
    ]
    return Table("Exact match at the trained length → at twice that length", columns, rows, notes)


def answers(task: str) -> list[Table]:
    """The whole answers that are right, and the characters, where answers have more than one."""
    summary = pd.read_csv(FOLDER / task / "summary.csv")
    settings = [f"asked with {', '.join(HARD[task])}"] if task in HARD else []
    whole = by_length(task, summary, "exact_match", [*settings, learned(summary)])
    if summary["accuracy"].equals(summary["exact_match"]):
        return [whole]
    return [whole, by_length(task, summary, "accuracy", [])]


def by_length(task: str, summary: pd.DataFrame, measure: str, notes: list[str]) -> Table:
    """By run and length: means over seeds with the ends of their 95 % interval."""
    lengths = sorted(summary["length"].unique())
    rows = []
    for (name, strategy), group in summary.groupby(["name", "strategy"], sort=False):
        found = group.set_index("length")
        cells = {str(length): cell(found.loc[length], measure) for length in lengths}
        rows.append({"run": label(str(name), str(strategy)), **cells})
    columns = [Column("run", "run"), *(Column(str(length), str(length)) for length in lengths)]
    return Table(f"{task}: {measure.replace('_', ' ')}", columns, rows, notes)


def learned(summary: pd.DataFrame) -> str:
    """Which encodings answer at the trained length: those that do not are no evidence on longer instances."""
    trained = summary[summary["length"] == summary["train_length"]].drop_duplicates("name")
    able = trained.loc[trained["exact_match"] > ABLE, "name"]
    length = trained["train_length"].iloc[0]
    if able.empty:
        return f"none has more than {ABLE} at the trained length, {length}, so that longer ones say nothing here"
    return f"more than {ABLE} at the trained length, {length}: {', '.join(able)}"


def cell(entry: pd.Series, measure: str) -> str:
    if pd.isna(entry[measure]):
        return "-"
    return f"{entry[measure]:.2f} ({entry[f'{measure}_low']:.2f} … {entry[f'{measure}_high']:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for task in tasks.names():
        subprocess.run(compared(task), check=True, cwd=ROOT)
        there = [name for name in tasks.names() if (FOLDER / name / "summary.csv").is_file()]
        done = [overview(there), *(table for name in there for table in answers(name))]
        text = document("Answers by task, encoding and length", done)
        (FOLDER / "tasks.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
