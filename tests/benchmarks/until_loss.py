"""Whole processes until tiny Shakespeare is learned at windows of 64: a plain recipe, and `pe train`, in turn.

    python tests/benchmarks/until_loss.py --rounds 3 --steps 160

The plain recipe is the one that people run on laptops: a GPT of four layers and 128 columns in float32, 2000 steps of
12 windows, AdamW at 1e-3 falling to 1e-4 after 100 steps of warm-up, weight decay 0.1. pe takes larger
batches, and Muon at twice its usual rate, since so few steps are taken. Both losses are of the same held-out windows,
all their characters counted. Writes results/benchmarks/until_loss.md.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import Any

import numpy as np
import others
import torch
from side_by_side import FOLDER, step

from pe_cli import files, sources
from pe_cli.corpus import Batches, Corpus
from pe_cli.documents import Table, document
from pe_cli.protocols import Text, sampled
from pe_cli.tables import Column
from pe_cli.training import VALIDATION_WINDOWS
from pe_cli.versions import machine

LENGTH, WINDOWS, STEPS, WARMUP = 64, 12, 2000, 100
FIRST, LAST = 1e-3, 1e-4
MUON = 0.04


def rate(number: int) -> float:
    if number < WARMUP:
        return FIRST * (number + 1) / (WARMUP + 1)
    done = (number - WARMUP) / (STEPS - WARMUP)
    return LAST + 0.5 * (FIRST - LAST) * (1 + math.cos(math.pi * done))


def plain() -> float:
    """Train by the plain recipe: the loss on the windows that validate a run of pe."""
    corpus = sources.load("shakespeare")
    assert isinstance(corpus, Corpus)
    torch.manual_seed(1337)
    model = others.PlainGPT(len(corpus.alphabet), LENGTH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=FIRST, betas=(0.9, 0.99), weight_decay=0.1)
    drawn = Batches(corpus.train, LENGTH, WINDOWS, seed=1337)
    for number in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(number)
        step(model, model, optimizer, drawn, half=False)
    ends = sampled(Text(len(corpus.ids), corpus.held_start), LENGTH, VALIDATION_WINDOWS).ends
    windows = torch.from_numpy(corpus.ids[ends[:, None] + np.arange(-LENGTH - 1, 0)].astype(np.int64))
    with torch.inference_mode():
        logits = model.eval()(windows[:, :-1])
        return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()))


def pe(steps: int, windows: int) -> list[str]:
    settings = {
        "training.length": LENGTH,
        "training.batch_size": windows,
        "training.steps": steps,
        "training.eval_every": steps,
        "training.save_every": steps,
        "training.muon_learning_rate": MUON,
    }
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "pe_cli", "train", "--encoding", "rope"]
    return [*command, "--data", "shakespeare", *sets, "--json", "--quiet"]


def timed(command: list[str]) -> tuple[float, Any]:
    """Seconds of a whole process, and the JSON that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        out = ["--out", folder] if "train" in command else []
        done = subprocess.run([*command, *out], check=True, stdout=subprocess.PIPE, text=True)
        return time.perf_counter() - started, json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=160, help="of pe")
    parser.add_argument("--batch", type=int, default=32, help="windows of a step of pe")
    parser.add_argument("--plain", action="store_true", help="train by the plain recipe once, and print its loss")
    asked = parser.parse_args()
    if asked.plain:
        sys.stdout.write(json.dumps({"validation_loss": plain()}))
        return
    ours = f"pe train --encoding rope, {asked.steps} steps of {asked.batch} windows, Muon at {MUON}"
    recipes = {
        f"plain recipe, {STEPS} steps of {WINDOWS} windows": [sys.executable, __file__, "--plain"],
        ours: pe(asked.steps, asked.batch),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in recipes}
    for _ in range(asked.rounds):
        for name, command in recipes.items():
            seconds, told = timed(command)
            found[name].append((seconds, told["validation_loss"]))
    first = next(iter(found.values()))
    shown = [
        {
            "recipe": name,
            "loss": values[0][1],
            "seconds": median(seconds for seconds, _ in values),
            "range": f"{min(values)[0]:.1f} … {max(values)[0]:.1f}",
            "quicker": median(theirs / ours for (ours, _), (theirs, _) in zip(values, first, strict=True)),
        }
        for name, values in found.items()
    ]
    columns = [
        Column("recipe", "recipe"),
        Column("loss", "validation loss", ".3f"),
        Column("seconds", "seconds", ".1f"),
        Column("range", "least … most"),
        Column("quicker", "times as quick", ".2f"),
    ]
    facts = [
        f"made by `python tests/benchmarks/until_loss.py --rounds {asked.rounds} --steps {asked.steps} --batch "
        f"{asked.batch}` on {machine(torch.device('cpu'))}; seconds of whole processes, in turn",
    ]
    text = document("Until tiny Shakespeare is learned", [Table("Windows of 64 characters", columns, shown, facts)])
    FOLDER.mkdir(parents=True, exist_ok=True)
    files.write_text(FOLDER / "until_loss.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
