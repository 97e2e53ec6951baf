"""Kills a training and a comparison at random moments, starts them again, and asks whether anything came of it.

    python tests/experiments/soak.py --kills 50 [--seed N]

The two commands run once undisturbed, in a folder of their own. Then they run in rounds, each in a new folder: every
process is killed by SIGKILL, alone or with all others of its command, at a moment that is drawn, and the command is
started again until it ends by itself. When the kills are used up, the last commands are left alone. After every kill
all that lies in the folder must be whole; at the end of a round it must be what the undisturbed commands made, but for
times. Prints what was killed where, and exits with 1 if anything was torn, left behind or different. Linux only.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from command_line import strict_json
from processes import kill_all, kill_one, members, started, until, words
from small_runs import config_file

from pe_cli import checkpoint
from pe_cli.documents import Table
from pe_cli.errors import RunError
from pe_cli.runs import STATE
from pe_cli.tables import Column

TIMES = {"seconds", "chars_per_second", "tables"}
"""Keys that differ from one run to the other; `tables` has digests of files with times in them."""
CONFIGS = {"train": ["rope.yaml"], "compare": ["learned.yaml", "alibi.yaml"]}
MOST_KILLS = {"train": 2, "compare": 4}
"""In one round, so that each comes to its end."""
MOST_CHANGES = 80
"""Most kills fall after so many changes of the folder at most, the others at any time."""


@dataclass(frozen=True)
class Kill:
    """One kill: of what, and where it fell; `step` is that of the checkpoint it left."""

    command: str
    killed: str
    fell: str
    step: int | None
    problems: tuple[str, ...]


@dataclass
class Soak:
    """What is drawn, what was undisturbed, and what has happened."""

    draw: random.Random
    wanted: int
    undisturbed: Path
    usual: dict[str, float] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    rounds: int = 0


def prepare(folder: Path) -> None:
    for names in CONFIGS.values():
        for name in names:
            training = {"steps": 150, "save_every": 5, "eval_every": 25}
            config_file(folder / name, encoding=name.removesuffix(".yaml"), training=training)


def command(name: str, folder: Path) -> list[str]:
    """What a person would type now: what was interrupted goes on with --resume, which a comparison does by itself."""
    begun = list(folder.glob("results/runs/rope-*/run.json"))
    more = (["--resume"] if begun else []) if name == "train" else ["--name", "both", "--jobs", "2"]
    return [name, *CONFIGS[name], *more, "--threads", "1", "--quiet"]


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    with open(folder / f"{name}.log", "a") as log:
        return started(*command(name, folder), stdout=log, stderr=log, cwd=folder)


def left_alone(name: str, folder: Path) -> float:
    """Seconds of a command that ends by itself, and well."""
    began = time.monotonic()
    if (code := start(name, folder).wait()) != 0:
        raise SystemExit(f"{' '.join(command(name, folder))}: exit code {code}\n{(folder / f'{name}.log').read_text()}")
    return time.monotonic() - began


def killed(name: str, folder: Path, soak: Soak) -> Kill | None:
    """Start a command and kill it, or one of its processes; None where it has ended before the moment came."""
    before = changes(folder)
    process = start(name, folder)
    wait_for_the_moment(process, name, folder, soak)
    if process.poll() is not None:
        return None
    alive = members(process.pid)
    if soak.draw.random() < 0.5 or len(alive) == 1:
        what = "all"
        kill_all(process.pid)
    else:
        victim = soak.draw.choice(alive)
        what = role(victim, process.pid)
        kill_one(victim)
    process.wait()
    until(lambda: not members(process.pid))
    fell, step = where(name, folder, changes(folder) != before)
    problems = torn(folder)
    if what != "all" and "Traceback" in (said := (folder / f"{name}.log").read_text()):
        problems.append(f"a traceback: {said.splitlines()[-1]}")
    return Kill(name, what, fell, step, tuple(problems))


def wait_for_the_moment(process: subprocess.Popen[str], name: str, folder: Path, soak: Soak) -> None:
    if soak.draw.random() < 0.3:
        end = time.monotonic() + soak.draw.uniform(0, soak.usual[name])
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        return
    left, before = soak.draw.randint(1, MOST_CHANGES), changes(folder)
    while process.poll() is None and left > 0:
        time.sleep(0.001)
        if (now := changes(folder)) != before:
            left, before = left - 1, now


def changes(folder: Path) -> list[tuple[str, int]]:
    """Names and times of all folders of results: each file that comes or goes makes another list."""
    found = []
    for path in [*folder.glob("results"), *folder.glob("results/*"), *folder.glob("results/runs/*")]:
        if path.is_dir() and not path.is_symlink():
            found.append((str(path), path.stat().st_mtime_ns))
    return found


def role(process: int, first: int) -> str:
    said = words(process)
    if process == first:
        return "the command alone"
    if "resource_tracker" in said:
        return "its resource tracker"
    return "a worker, or what they are forked from"


def where(name: str, folder: Path, has_changed: bool) -> tuple[str, int | None]:
    """What a command was at, told by what it has left."""
    names = [config.removesuffix(".yaml") for config in CONFIGS[name]]
    runs = [path for one in names for path in folder.glob(f"results/runs/{one}-*")]
    steps = [step_of(run) for run in runs if not (run / "model.safetensors").exists()]
    if not has_changed:
        return "start", None
    if steps or not runs:
        return "training", max(steps, default=0)
    if name == "train":
        return "end of training", None
    return ("comparison" if all((run / "evaluation.json").exists() for run in runs) else "evaluation"), None


def step_of(run: Path) -> int:
    return int(checkpoint.load(run / STATE, "")[1]["step"]) if (run / STATE).exists() else 0


def torn(folder: Path) -> list[str]:
    """What is not whole: JSON, tables, checkpoints."""
    problems = []
    for path in sorted((folder / "results").rglob("*")):
        if not path.is_file() or path.name.endswith((".tmp", ".lock")):
            continue
        try:
            content(path, folder)
        except (ValueError, RunError) as error:
            problems.append(f"{path.relative_to(folder)}: {error}")
    return problems


def content(path: Path, folder: Path) -> Any:
    """What two equal files have in common: everything but times and the folder that they lie in.

    ValueError or RunError for one that is torn.
    """
    if path.suffix == ".safetensors":
        tensors, meta = checkpoint.load(path, "")
        return checkpoint.weight_sha256(tensors), meta.get("step")
    if path.suffix == ".png":
        return path.read_bytes()
    text = path.read_text().replace(str(folder), "")
    if path.suffix == ".json":
        return {key: value for key, value in strict_json(text).items() if key not in TIMES}
    if path.suffix == ".csv":
        return table(text)
    return None if path.suffix == ".md" else text  # it says how many minutes it took


def table(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    if not text.endswith("\n") or any(None in row or None in row.values() for row in rows):
        raise ValueError("a line is torn")
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def differences(one: Path, other: Path) -> list[str]:
    """Files of results that are in one folder alone, or not equal."""
    found = []
    for name in sorted({name for folder in (one, other) for name in names(folder)}):
        if name not in names(one) or name not in names(other):
            found.append(f"{name} is there only {'undisturbed' if name in names(one) else 'after kills'}")
        elif content(one / name, one) != content(other / name, other):
            found.append(f"{name} differs")
    if os.readlink(one / "results/runs/latest") != os.readlink(other / "results/runs/latest"):
        found.append("results/runs/latest differs")
    return found


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in (folder / "results").rglob("*") if path.is_file()]


def one_round(soak: Soak, folder: Path) -> None:
    """Both commands to their end, killed as long as there are kills left."""
    soak.rounds += 1
    prepare(folder)
    for name in CONFIGS:
        for _ in range(min(MOST_KILLS[name], soak.wanted - len(soak.kills))):
            if (kill := killed(name, folder, soak)) is None:
                break
            soak.kills.append(kill)
            sys.stderr.write(f"{len(soak.kills)} of {soak.wanted}: {kill}\n")
        left_alone(name, folder)
    soak.differences += [f"round {soak.rounds}: {text}" for text in differences(soak.undisturbed, folder)]


def report(soak: Soak, seed: int) -> str:
    columns = [
        Column("command", "command"),
        Column("killed", "killed"),
        Column("fell", "fell in"),
        Column("kills", "kills"),
        Column("survived", "survived"),
        Column("steps", "at steps"),
    ]
    rows = []
    for key in dict.fromkeys((kill.command, kill.killed, kill.fell) for kill in sorted(soak.kills, key=str)):
        group = [kill for kill in soak.kills if (kill.command, kill.killed, kill.fell) == key]
        steps = sorted({kill.step for kill in group if kill.step is not None})
        whole = sum(not kill.problems for kill in group)
        rows.append(
            dict(zip(("command", "killed", "fell"), key, strict=True))
            | {"kills": len(group), "survived": whole, "steps": ", ".join(map(str, steps)) or None}
        )
    problems = [f"{kill.command}, {kill.fell}: {text}" for kill in soak.kills for text in kill.problems]
    weights = not any("model.safetensors" in text for text in soak.differences)
    notes = [
        f"made by `{' '.join(['python', 'tests/experiments/soak.py', *sys.argv[1:]])}`, seed {seed}",
        f"{len(soak.kills)} kills, rounds: {soak.rounds}, {sum(not kill.problems for kill in soak.kills)} survived",
        f"final weights equal: {'yes' if weights else 'no'}",
        f"all other files equal but for times, and none left behind: {'no' if soak.differences else 'yes'}",
        *problems,
        *soak.differences,
    ]
    return Table("Kills", columns, rows, notes).markdown()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(random.Random(asked.seed), asked.kills, Path(name) / "undisturbed")
        prepare(soak.undisturbed)
        soak.usual = {command: left_alone(command, soak.undisturbed) for command in CONFIGS}
        while soak.rounds == 0 or len(soak.kills) < asked.kills:
            one_round(soak, Path(name) / f"round{soak.rounds + 1}")
    sys.stdout.write(report(soak, asked.seed) + "\n")
    if soak.differences or any(kill.problems for kill in soak.kills):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
