"""Every task with eight encodings, three seeds: how often answers are right, up to four times the trained length.

    python tests/experiments/tasks.py

Each task is one comparison in results/tasks, made by the command line with configs/tasks-by-encoding. What is finished
is not trained again. results/tasks/tasks.md has the exact match of all.
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


def compared(task: str) -> list[str]:
    """The command for one task, at the lengths that it has by default."""
    configs = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "configs/tasks-by-encoding").glob("*.yaml"))
    asked = ["--data", f"task:{task}", "--seeds", SEEDS, "--baseline", "rope"]
    command = [sys.executable, "-c", "from pe_cli.cli import main; main()", "compare", *configs, *asked]
    return [*command, "--name", task, "--out", "results/tasks", "--quiet"]


def answers(task: str) -> Table:
    """Exact match by run and length, means over seeds with the ends of their 95 % interval."""
    summary = pd.read_csv(FOLDER / task / "summary.csv")
    lengths = sorted(summary["length"].unique())
    rows = []
    for (name, strategy), group in summary.groupby(["name", "strategy"], sort=False):
        by_length = group.set_index("length")
        rows.append({"run": label(name, strategy), **{str(length): cell(by_length.loc[length]) for length in lengths}})
    columns = [Column("run", "run"), *(Column(str(length), str(length)) for length in lengths)]
    return Table(task, columns, rows)


def cell(entry: pd.Series) -> str:
    if pd.isna(entry["exact_match"]):
        return "-"
    return f"{entry['exact_match']:.2f} ({entry['exact_match_low']:.2f} … {entry['exact_match_high']:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for task in tasks.names():
        subprocess.run(compared(task), check=True, cwd=ROOT)
        done = [answers(name) for name in tasks.names() if (FOLDER / name / "summary.csv").is_file()]
        text = document("Exact match by task, encoding and length", done)
        (FOLDER / "tasks.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
