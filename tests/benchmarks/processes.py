"""Whole processes in turn: how quickly commands start, what runs at the same time save, and when compiling pays back.

    python tests/benchmarks/processes.py --rounds 3

Writes results/benchmarks/processes.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from side_by_side import FOLDER

from pe_cli import files
from pe_cli.documents import Table, document
from pe_cli.experiment import TrainingConfig
from pe_cli.tables import Column
from pe_cli.versions import machine

CONFIGS = [str(Path(__file__).parents[2] / "configs" / f"{name}.yaml") for name in ("rope", "alibi", "t5", "learned")]
SEEDS, COMPARED_STEPS, COMPARED_LENGTH = 2, 100, 512
FEW, MANY = 50, 350
STARTS = ["--version", "--help", "list", "list encodings", "inspect alibi --length 8", "train --set training.steps=1"]
COLUMNS = [
    Column("what", "what"),
    Column("seconds", "seconds", ".2f"),
    Column("range", "least … most"),
]


def seconds(arguments: list[str], folder: str, **environment: str) -> float:
    """Of one process of pe that writes into `folder`."""
    out = ["--out", folder] if arguments[0] in ("train", "compare") else []
    command = [sys.executable, "-m", "pe_cli", *arguments, *out]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - started


def shown(found: dict[str, list[float]]) -> list[dict[str, object]]:
    return [
        {"what": name, "seconds": median(values), "range": f"{min(values):.2f} … {max(values):.2f}"}
        for name, values in found.items()
    ]


def starting(rounds: int) -> Table:
    found: dict[str, list[float]] = {f"pe {command}": [] for command in STARTS}
    for _ in range(rounds):
        for command in STARTS:
            with tempfile.TemporaryDirectory() as folder:
                found[f"pe {command}"].append(seconds(command.split(), folder))
    return Table("From the start of a command to its end", COLUMNS, shown(found))


def comparing(rounds: int) -> Table:
    threads, cores = str(torch.get_num_threads()), len(os.sched_getaffinity(0))
    ways = {
        f"one after another, {threads} threads each": ["--jobs", "1", "--threads", threads],
        f"as pe compare does on {cores} cores": [],
    }
    sizes = ["--seeds", str(SEEDS), "--set", f"training.steps={COMPARED_STEPS}", "--max-len", str(COMPARED_LENGTH)]
    one = ["compare", *CONFIGS, *sizes, "--quiet"]
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, options in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                found[way].append(seconds([*one, *options], folder))
    ratio = median(apart / together for apart, together in zip(*found.values(), strict=True))
    runs = len(CONFIGS) * SEEDS
    title = f"A comparison of {runs} runs of {COMPARED_STEPS} steps, evaluated up to {COMPARED_LENGTH} characters"
    return Table(
        title, COLUMNS, shown(found), [f"times as quick: {ratio:.2f}, the median of the ratios of single turns"]
    )


def compiling(rounds: int) -> Table:
    """Few and many steps tell the seconds before the first step and those of each."""
    kinds = [
        ("as it is", FEW),
        ("as it is", MANY),
        ("compiled, first time", FEW),
        ("compiled", FEW),
        ("compiled", MANY),
    ]
    found: dict[str, list[float]] = {f"{way}, {steps} steps": [] for way, steps in kinds}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for way, steps in kinds:
                asked = {"steps": steps, "compile": str("compiled" in way).lower(), "eval_every": steps}
                sets = [word for key, value in asked.items() for word in ("--set", f"training.{key}={value}")]
                with tempfile.TemporaryDirectory() as folder:
                    arguments = ["train", "--encoding", "rope", *sets]
                    taken = seconds(arguments, folder, TORCHINDUCTOR_CACHE_DIR=cache)
                found[f"{way}, {steps} steps"].append(taken)
    breaks = []
    for plain, plain_many, first, again, many in zip(*found.values(), strict=True):
        saved = ((plain_many - plain) - (many - again)) / (MANY - FEW)  # by step
        breaks.append(FEW + (first - plain) / saved)
    config = TrainingConfig()
    chars = median(breaks) * config.batch_size * config.length
    fact = f"compiling for the first time pays back from {chars / 1e6:.1f} million characters of training on"
    return Table("Training rope with default sizes", COLUMNS, shown(found), [fact])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    tables = [starting(rounds), comparing(rounds), compiling(rounds)]
    facts = [
        f"made by `python tests/benchmarks/processes.py --rounds {rounds}` on {machine(torch.device('cpu'))}; seconds: "
        "medians over turns"
    ]
    last = tables[-1]
    tables[-1] = Table(last.title, last.columns, last.rows, [*last.notes, *facts])
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = document("Whole processes", tables)
    files.write_text(FOLDER / "processes.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
