"""Mutants of configs and of runs, given to the commands that read them, and what came of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NoReturn
from unittest.mock import patch

import damages
import mutants
from command_line import pe, signals_at
from refusals import contents
from small_runs import config_file
from watched import Seen, watched

from pe_cli.built_in import Download
from pe_cli.config import resolve
from pe_cli.errors import CorpusError, PeError

CONFIGS = Path(__file__).parents[2] / "configs"
_SHOWN = 4000


@dataclass
class Tally:
    """How often a command ended in which way, what was wrong, and the most that one call raised the peak of memory."""

    command: str
    tried: int = 0
    ends: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("accepted", "refused", "failed", "traceback"), 0)
    )
    outside: int = 0
    faults: int = 0
    mib: float = 0.0

    def add(self, seen: Seen, faults: Sequence[str]) -> None:
        self.tried += 1
        self.ends[seen.outcome] += 1
        self.outside += any("outside of the folder" in fault for fault in faults)
        self.faults += bool(faults)
        self.mib = max(self.mib, seen.mib)


def configs(count: int, seed: int, only: int | None = None, tell: Callable[[str], None] = print) -> list[Tally]:
    """Mutants of all configs, shown as they resolve and planned, which writes nothing at all."""
    good = [path.read_bytes() for path in sorted(CONFIGS.rglob("*.yaml")) if "claims" not in path.parts]
    tallies = [Tally("config"), Tally("train --dry-run")]
    with TemporaryDirectory() as place, patch.object(Download, "read", _no_network):
        folder = Path(place).resolve()
        config_file(folder / "small.yaml", encoding="rope")  # and its text
        for number in _numbers(count, only):
            content = mutants.config(good, Random(f"configs {seed} {number}"))
            (folder / "mutant.yaml").write_bytes(content)
            before = contents(folder)
            with _inside(folder):
                shown = watched(folder, ["config", "mutant.yaml"])
                planned = watched(folder, ["train", "mutant.yaml", "--dry-run"])
                faults = [*shown.faults, *_read_again(folder, shown)]
            changed = ["files are changed"] if contents(folder) != before else []
            tallies[0].add(shown, [*faults, *changed])
            tallies[1].add(planned, [*planned.faults, *changed])
            for fault in (*faults, *planned.faults, *changed):
                tell(f"configs, seed {seed}, number {number}: {fault}\n  {content[:_SHOWN]!r} ({len(content)} bytes)")
    return tallies


def _no_network(corpus: Download) -> NoReturn:
    raise CorpusError(f"corpus '{corpus.name}': it is not fetched here")


def _read_again(folder: Path, shown: Seen) -> list[str]:
    """Whether what `pe config` writes is the same experiment again."""
    if shown.outcome != "accepted" or shown.done is None:
        return []
    again = folder / "again.yaml"
    again.write_text(shown.done.out, encoding="utf-8")
    try:
        same = resolve(again, {}).experiment == resolve(Path("mutant.yaml"), {}).experiment
        return [] if same else ["what is written down is another experiment"]
    except PeError as error:
        return [f"what is written down is refused: {error}"]
    finally:
        again.unlink()


RUNS = {"finished": "rope", "interrupted": "learned"}
WHICH = ["finished", "interrupted"]
COMMANDS: dict[str, list[list[object]]] = {
    "extrapolate": [["--lengths", "16,32", "--json", "--threads", "1", "--quiet"]],
    "sample": [["--chars", "5"], ["--chars", "20", "--greedy", "--json"]],
    "plot": [["--out", "picture.png"], ["--out", "picture.svg", "--kind", "decay", "--json"]],
    "properties": [["--fast", "--threads", "1", "--quiet"]],
    "inspect": [["--length", "4"]],
}


READING = ("sample", "plot", "properties", "inspect")


def checkpoints(count: int, seed: int, only: int | None = None, tell: Callable[[str], None] = print) -> list[Tally]:
    """Damaged copies of a finished run, given to all that reads one, and of an interrupted one, which is to go on."""
    tallies = {name: Tally(name) for name in (*COMMANDS, "train --resume")}
    with TemporaryDirectory() as place:
        base = Path(place).resolve()
        made = _runs(base / "made")
        for number in _numbers(count, only):
            draw = Random(f"checkpoints {seed} {number}")
            folder = base / "copy"
            shutil.copytree(base / "made", folder, symlinks=True)
            which = draw.choice(WHICH)
            run = folder / made[which].relative_to(base / "made")
            what = damages.damage(run, draw)
            name, arguments = _command(which, run, folder, draw)
            before = contents(folder)
            with _inside(folder):
                seen = watched(folder, arguments)
            faults = [*seen.faults, *(["a pickle was opened"] if (folder / "sprung").exists() else [])]
            if seen.outcome == "refused" and name in READING and contents(folder) != before:
                faults.append("files are changed")
            tallies[name].add(seen, faults)
            for fault in faults:
                tell(f"checkpoints, seed {seed}, number {number}: {which} run, {what}; pe {name}: {fault}")
            shutil.rmtree(folder)
    return list(tallies.values())


def _command(which: str, run: Path, folder: Path, draw: Random) -> tuple[str, list[object]]:
    if which == "interrupted" and draw.random() < 0.8:
        return "train --resume", ["train", *_training(folder, which), "--resume"]
    name = draw.choice(sorted(COMMANDS))
    return name, [name, run.relative_to(folder), *draw.choice(COMMANDS[name])]


def _training(folder: Path, which: str) -> list[object]:
    return [folder / f"{which}.yaml", "--out", folder / "results", "--threads", 1, "--quiet"]


def _runs(folder: Path) -> dict[str, Path]:
    """A finished and evaluated run, and one that was interrupted after a checkpoint."""
    steps = {"steps": 6, "save_every": 2, "eval_every": 3}
    found = {}
    for which, encoding in RUNS.items():
        config_file(folder / f"{which}.yaml", encoding=encoding, training=steps, evaluation={"lengths": [16, 32]})
        with signals_at(4, *([2] if which == "interrupted" else [])):
            pe("train", *_training(folder, which))
        [found[which]] = (folder / "results" / "runs").glob(f"{which}-*")
    done = pe("extrapolate", found["finished"], "--quiet")
    assert done.code == 0, done.err
    assert (found["interrupted"] / "state.safetensors").is_file()
    with _inside(folder):  # what is read and made once, such as fonts, is no answer to a damaged file
        for name, variants in COMMANDS.items():
            for more in variants:
                pe(name, found["finished"].relative_to(folder), *more)
        for picture in folder.glob("picture.*"):
            picture.unlink()
    return found


def _numbers(count: int, only: int | None) -> Iterator[int]:
    yield from range(count) if only is None else [only]


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def table(tallies: Sequence[Tally]) -> str:
    """Markdown."""
    heads = ["command", "tried", "accepted", "refused", "failed", "tracebacks", "outside", "faults", "peak growth, MiB"]
    rows = [[one.command, one.tried, *one.ends.values(), one.outside, one.faults, f"{one.mib:.0f}"] for one in tallies]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def main(kind: str, count: int, seed: int, only: int | None) -> int:
    """Tries mutants of a kind and prints what came of it; 1 where something is wrong."""

    def tell(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    tallies = {"configs": configs, "checkpoints": checkpoints}[kind](count, seed, only, tell)
    tell(f"## Mutants: {kind}\n\n{table(tallies)}")
    tell(f"* made by `python tests/experiments/fuzz.py {kind} {count}`, seed {seed}")
    return int(any(one.faults for one in tallies))
