"""Every encoding through the command line, one after the other: what it learns, costs, and cannot have seen.

    python tests/experiments/catalogue.py pydocs     200 steps on pydocs, evaluated at 128 and 4096 characters
    python tests/experiments/catalogue.py letters    two layers, 300 steps on independent letters: nothing to be learned
    python tests/experiments/catalogue.py lag        one layer, on letters that repeat those five places before

Each writes results/catalogue/NAME.csv and NAME.md. What the CSV has already is not run again, so that a new encoding
costs one row. `--jobs 2` runs two at a time, each with one thread.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pe_cli.documents import Table, document
from pe_cli.encodings import registry
from pe_cli.tables import Column

FOLDER = Path(__file__).parents[2] / "results" / "catalogue"
LETTERS = "abcdefghijklmnop"
COUNT, LAGGED = 40_000, 400_000
"""Letters of the texts: few are learned by heart, which shows what a model can see at all; many are not."""
LAG, CHANCE = 5, 0.9
Row = dict[str, Any]


def pe(*arguments: str) -> tuple[Any, dict[str, float]]:
    """The strict JSON of a command, its processor time and its peak of resident memory. Divergence exits with 1."""
    with tempfile.TemporaryFile() as out:
        command = [sys.executable, "-m", "pe_cli", *arguments, "--json", "--quiet"]
        child = subprocess.Popen(command, stdout=out)
        _, code, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(code)
        out.seek(0)
        text = out.read()
    if not text:
        raise SystemExit(f"{' '.join(arguments)}: exit code {child.returncode}")
    return json.loads(text), {"seconds": round(used.ru_utime + used.ru_stime, 1), "mib": round(used.ru_maxrss / 1024)}


def trained(
    name: str, data: str, steps: int, out: str, threads: Sequence[str], *sets: str
) -> tuple[Row, dict[str, float]]:
    settings = [f"training.steps={steps}", f"training.eval_every={steps}", *sets]
    changes = [word for setting in settings for word in ("--set", setting)]
    return pe("train", "--encoding", name, "--data", data, "--seed", "1337", *changes, "--out", out, *threads)


def on_pydocs(name: str, out: str, threads: Sequence[str]) -> Row:
    run, cost = trained(name, "pydocs", 200, out, threads)
    row = {
        "encoding": name,
        "parameters": run["parameters"],
        "status": run["status"],
        "training_seconds": cost["seconds"],
        "training_mib": cost["mib"],
    }
    if run["status"] != "finished":
        return row
    lengths = ["--lengths", "128,4096", "--strategy", "none"]
    found, cost = pe("extrapolate", run["directory"], *lengths, "--out", out, *threads)
    short, far = found["rows"]
    return row | {
        "loss_128": short["loss"],
        "loss_4096": far["loss"],
        "status": far["status"],
        "evaluation_seconds": cost["seconds"],
        "evaluation_mib": cost["mib"],
    }


def on_letters(name: str, out: str, threads: Sequence[str]) -> Row:
    run, _ = trained(name, text_of(out, uniform()), 300, out, threads, "model.n_layers=2", "training.batch_size=16")
    return {"encoding": name, "train_loss": run["train_loss"], "held_out_loss": run["validation_loss"]}


def on_lag(name: str, out: str, threads: Sequence[str]) -> Row:
    run, _ = trained(name, text_of(out, lagged()), 400, out, threads, "model.n_layers=1")
    return {"encoding": name, "held_out_loss": run["validation_loss"]}


def text_of(out: str, letters: Iterator[str]) -> str:
    path = Path(out) / "letters.txt"
    path.write_text("".join(letters), encoding="utf-8")
    return str(path)


def uniform() -> Iterator[str]:
    draws = random.Random(0)
    return (draws.choice(LETTERS) for _ in range(COUNT))


def lagged() -> Iterator[str]:
    draws, text = random.Random(0), ""
    for place in range(LAGGED):
        repeated = place >= LAG and draws.random() < CHANCE
        letter = text[place - LAG] if repeated else draws.choice(LETTERS)
        text += letter
        yield letter


def best_on_lag() -> float:
    """The entropy of the next letter for someone who knows the rule."""
    copied, other = CHANCE + (1 - CHANCE) / len(LETTERS), (1 - CHANCE) / len(LETTERS)
    return -copied * math.log(copied) - (len(LETTERS) - 1) * other * math.log(other)


NAME = Column("encoding", "encoding")
EXPERIMENTS: dict[str, tuple[str, Callable[[str, str, Sequence[str]], Row], list[Column], list[str]]] = {
    "pydocs": (
        "Every encoding, 200 steps on pydocs, at 128 and 4096 characters",
        on_pydocs,
        [
            NAME,
            Column("loss_128", "loss at 128", ".3f"),
            Column("loss_4096", "loss at 4096", ".3f"),
            Column("status", "status at 4096"),
            Column("training_seconds", "training, s", ".1f"),
            Column("training_mib", "training, MiB", ".0f"),
            Column("evaluation_seconds", "evaluation, s", ".1f"),
            Column("evaluation_mib", "evaluation, MiB", ".0f"),
        ],
        [
            "one seed (1337), default sizes, protocol same_targets with 2,048 scored characters; losses in nats per "
            "character",
            "s and MiB: processor time and largest resident memory of a whole command on one thread, start included; "
            "none shows what that is without an encoding",
        ],
    ),
    "letters": (
        "Every encoding, two layers, 300 steps of 16 windows on 40,000 independent letters",
        on_letters,
        [NAME, Column("train_loss", "training loss", ".3f"), Column("held_out_loss", "held-out loss", ".3f")],
        [
            f"one seed (1337), 16 letters: no rule predicts a letter better than ln 16 = "
            f"{math.log(len(LETTERS)):.3f} nats; a held-out loss well below would show a view of the future"
        ],
    ),
    "lag": (
        "Every encoding, one layer, 400 steps on 400,000 letters that repeat those five places before",
        on_lag,
        [NAME, Column("held_out_loss", "held-out loss", ".3f")],
        [
            f"one seed (1337), 16 letters, each that of five places before with probability 0.9: who knows the rule "
            f"has {best_on_lag():.3f} nats, who does not has ln 16 = {math.log(len(LETTERS)):.3f}"
        ],
    ),
}


def numbered(text: str) -> Any:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    title, measure, columns, notes = EXPERIMENTS[asked.experiment]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{asked.experiment}.csv"
    rows: dict[str, Row] = {}
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            rows = {row["encoding"]: {key: numbered(text) for key, text in row.items()} for row in csv.DictReader(file)}

    def run(name: str) -> Row:
        with tempfile.TemporaryDirectory() as out:
            return measure(name, out, ["--threads", "1"])

    missing = [name for name in registry.names() if name not in rows]
    with ThreadPoolExecutor(asked.jobs) as pool:
        for name, row in zip(missing, pool.map(run, missing), strict=True):
            rows[name] = row
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, max((list(row) for row in rows.values()), key=len))
                writer.writeheader()
                writer.writerows(rows[known] for known in sorted(rows))
    table = Table(title, columns, [rows[name] for name in sorted(rows)], notes)
    text = document("The catalogue, measured", [table])
    (FOLDER / f"{asked.experiment}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
