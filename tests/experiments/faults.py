"""Provokes what goes wrong on real machines, and shows what a user then sees.

    python tests/experiments/faults.py [NAME …]

Writes results/faults.md, or the sections of the faults that are named: for each the commands, word for word what they
said, their exit codes, and what must hold of what they left. Exits with 1 where something does not hold. Linux only; a
small disk is mounted, so root alone can make the whole page.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from processes import COMMAND, kill_one, members, until
from provoking import Fault, after, info, long, opened
from small_runs import text_file

from pe_cli import runs

PAGE = Path(__file__).parents[2] / "results" / "faults.md"
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Permissions of files count for root too."""
LITTLE_MEMORY = """
import os, resource, sys
import numpy
from pe_cli import commands, plots, statistics
from matplotlib.backends import backend_agg
from pe_cli.cli import main
statistics.load()
numpy.linalg.inv(numpy.eye(300)) @ numpy.eye(300)  # OpenBLAS takes its memory once, and ends the process without it
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + 80_000_000, resource.RLIM_INFINITY))
main()
"""
"""`pe`, which may take 80 MB more than it has once everything is imported."""


def disk_full(fault: Fault) -> None:
    """A disk of 200 kB is full before the first checkpoint is written; then room is made."""
    config, results = fault.config("small", model={"d_model": 64}), fault.folder / "results"
    results.mkdir()
    with small_disk(results):
        (results / "filler").write_bytes(b"x" * 100_000)
        fault.ends(fault.pe("train", config, "--quiet"), 1, "no space left on the device", "--resume goes on")
        fault.left_behind()
        subprocess.run(["mount", "-o", "remount,size=4m", str(results)], check=True)
        fault.ends(fault.pe("train", config, "--resume", "--quiet"), 0)
    fault.ends(fault.pe("train", config, "--seed", 2, "--json", "--quiet", stdout="/dev/full"), 2, "No space left")


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def no_permission(fault: Fault) -> None:
    """Nothing may be written in the folder of results, or it cannot be one; the text may not be read."""
    config = fault.config("small")
    (fault.folder / "results").mkdir(mode=0o555)
    fault.ends(fault.pe("train", config, program=[*WITHOUT_RIGHTS, *COMMAND]), 2, "permission denied")
    fault.ends(fault.pe("train", config, "--out", "text.txt"), 2, "not a directory")
    fault.ends(fault.pe("train", config, "--out", "/proc/results"), 2, "/proc/results")
    (fault.folder / "text.txt").chmod(0o200)
    said = fault.pe("train", config, program=[*WITHOUT_RIGHTS, *COMMAND])
    fault.ends(said, 2, "text.txt", "ermission denied")
    fault.left_behind()


def read_only_results(fault: Fault) -> None:
    """Results that may only be read."""
    config, program = fault.config("small"), [*WITHOUT_RIGHTS, *COMMAND]
    fault.pe("train", config, "--quiet")
    run = fault.run("small").name
    folders = [path for path in fault.folder.rglob("*") if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    fault.ends(fault.pe("extrapolate", run, program=program), 2, "permission denied")
    fault.ends(fault.pe("compare", config, program=program), 2, "permission denied")
    fault.ends(fault.pe("sample", run, "--chars", 20, program=program), 0)
    for path in folders:
        path.chmod(0o755)
    fault.left_behind()


def out_of_memory(fault: Fault) -> None:
    """80 MB of memory are enough for short windows, and not for long ones."""
    config = fault.config("small", model={"d_model": 32}, evaluation={"lengths": [16, 256, 16384], "windows": 8})
    text_file(fault.folder / "text.txt", 400_000)
    fault.pe("train", config, "--quiet", "--threads", 1)
    said = fault.pe("extrapolate", "--quiet", "--threads", 1, program=[sys.executable, "-c", LITTLE_MEMORY])
    fault.ends(said, 0, "length 16384 does not fit into memory")
    rows = (fault.run("small") / "extrapolation.csv").read_text().splitlines()
    fault.holds["16 and 256 have a loss"] = sum(",ok," in row for row in rows) == 2
    fault.left_behind()


def killed_worker(fault: Fault) -> None:
    """One of two runs of a comparison is killed; the same command goes on with it, and trains nothing else."""
    configs = [fault.config("slow", **long()), fault.config("quick", encoding="alibi")]

    def kill(process: int) -> None:
        until(lambda: list(fault.folder.glob("results/runs/slow-*/state.safetensors")))
        lock = str(next(fault.folder.glob("results/runs/.locks/slow-*")))
        [worker] = [one for one in members(process) if lock in opened(one)]
        kill_one(worker)

    command = ["compare", *configs, "--name", "both", "--jobs", 2, "--threads", 1, "--quiet"]
    fault.ends(fault.pe(*command, at=kill), 1, "killed by signal 9", "1 of 2 runs have no result")
    fault.holds["the other run is kept"] = info(fault.run("quick"))["status"] == "finished"
    before = (fault.run("quick") / "run.json").stat().st_mtime_ns
    fault.ends(fault.pe(*command), 0)
    fault.holds["the other run is not trained again"] = (fault.run("quick") / "run.json").stat().st_mtime_ns == before
    fault.left_behind()


def signals(fault: Fault) -> None:
    """Ctrl-C, then SIGTERM, then to the end; a comparison likewise."""
    config = fault.config("slow", **long())
    for number, more, code in ((signal.SIGINT, [], 130), (signal.SIGTERM, ["--resume"], 143)):
        said = fault.pe("train", config, *more, "--threads", 1, at=after(fault.begun("slow"), number))
        fault.ends(said, code, "--resume goes on")
    fault.ends(fault.pe("train", config), 2, "was interrupted", "--resume", "--force")
    fault.ends(fault.pe("train", config, "--resume", "--threads", 1, "--quiet"), 0)
    other = fault.config("other", encoding="alibi", **long())
    said = fault.pe("compare", config, other, "--jobs", 2, "--quiet", at=after(fault.begun("other"), signal.SIGINT))
    fault.ends(said, 130, "the same command goes on")
    fault.left_behind()


def changed_text(fault: Fault) -> None:
    """The text has changed since the training, and has characters that training did not show."""
    config, text = fault.config("small"), fault.folder / "text.txt"
    fault.pe("train", config, "--quiet")
    run = fault.run("small").name
    text.write_text(text.read_text().replace("cat", "tac"))
    fault.ends(fault.pe("extrapolate", run), 2, "text.txt", "SHA-256 now", "--data")
    text.write_text(text.read_text().replace("cat", "dog").replace("tac", "dög"))
    fault.ends(fault.pe("extrapolate", run, "--data", "text.txt"), 2, "outside the alphabet", "'ö' U+00F6")
    fault.ends(fault.pe("sample", run, "--prompt", "dög"), 2, "'ö' U+00F6")
    fault.ends(fault.pe("train", config, "--resume"), 2, "nothing to resume")
    fault.left_behind()


def divergence(fault: Fault) -> None:
    """A learning rate that is far too high."""
    config = fault.config("wild", training={"learning_rate": 1000.0, "optimizer": "adamw", "steps": 30})
    fault.ends(fault.pe("train", config), 1, "diverged", "at step")
    fault.ends(fault.pe("extrapolate"), 2, "diverged")


class Trap:
    """What a pickle that is opened would do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)


def pickles(fault: Fault) -> None:
    """Checkpoints with a pickle in their place, which makes a folder when it is opened."""
    config = fault.config("slow", **long())
    fault.pe("train", config, "--threads", 1, "--quiet", at=after(fault.begun("slow"), signal.SIGINT))
    run = fault.run("slow")
    for name in (runs.STATE, runs.PREVIOUS):
        (run / name).write_bytes(pickle.dumps(Trap()))
    fault.ends(fault.pe("train", config, "--resume"), 2, "damaged or no checkpoint of pe", "--force")
    fault.pe("train", config, "--force", "--threads", 1, "--quiet", "--set", "training.steps=5")
    [short] = [path for path in fault.folder.glob("results/runs/slow-*") if path != run]
    (short / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    fault.ends(fault.pe("sample", short.name), 2, "model.safetensors", "damaged or no checkpoint of pe")
    fault.ends(fault.pe("extrapolate", short.name), 2, "model.safetensors", "damaged or no checkpoint of pe")
    fault.holds["the folder was not made"] = not list(fault.folder.rglob("sprung"))


def damaged_checkpoint(fault: Fault) -> None:
    """Half of the last checkpoint is lost: the one before it goes on. Then both are."""
    config = fault.config("slow", **long())
    for more, damaged, code in (([], [runs.STATE], 130), (["--resume"], [runs.STATE, runs.PREVIOUS], 130)):
        stop = after(fault.begun("slow"), signal.SIGINT)
        fault.ends(fault.pe("train", config, *more, "--threads", 1, at=stop), code)
        for name in damaged:
            os.truncate(fault.run("slow") / name, 1000)
    fault.holds["says that the one before it goes on"] = "going on from the checkpoint before it" in fault.seen[-1]
    fault.ends(fault.pe("train", config, "--resume"), 2, "damaged", "--force")


def two_at_once(fault: Fault) -> None:
    """The same training twice at once."""
    config = fault.config("slow", **long(steps=100_000, save_every=500, compile="false"))

    def second(process: int) -> None:
        fault.begun("slow")(process)
        other = Fault(fault.folder)
        other.ends(other.pe("train", config), 2, "another process is training or evaluating this run")
        fault.seen += other.seen
        fault.holds |= other.holds
        os.kill(process, signal.SIGTERM)

    fault.ends(fault.pe("train", config, "--threads", 1, "--quiet", at=second), 143)


FAULTS: dict[str, Callable[[Fault], None]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        disk_full, no_permission, read_only_results, out_of_memory, killed_worker, signals, changed_text, divergence,
        damaged_checkpoint, pickles, two_at_once,
    )
}  # fmt: skip
HEAD = "# What a user sees when something goes wrong\n\nMade by `python tests/experiments/faults.py`."


def title(name: str) -> str:
    return name.replace("-", " ").capitalize()


def section(name: str, fault: Fault) -> str:
    parts = [title(name), str(FAULTS[name].__doc__), *(f"```text\n{text}\n```" for text in fault.seen)]
    return "\n\n".join(
        [*parts, "\n".join(f"* {text}: {'yes' if right else 'NO'}" for text, right in fault.holds.items())]
    )


def written() -> dict[str, str]:
    """The sections that the page has, by their titles."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {part.partition("\n")[0]: part.rstrip() for part in text.split("\n## ")[1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*FAULTS, []], metavar="NAME", help=", ".join(FAULTS))
    failed = []
    for name in parser.parse_args().names or FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            fault = Fault(Path(folder))
            try:
                FAULTS[name](fault)
            except AssertionError as error:
                fault.holds[f"the fault is provoked: {error}"] = False
        failed += [f"{name}: {text}" for text, right in fault.holds.items() if not right]
        sections = written() | {title(name): section(name, fault)}
        parts = [HEAD, *(f"## {sections[title(one)]}" for one in FAULTS if title(one) in sections)]
        PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
