"""Commands in this process that are watched: how they end, where they write, how long and how much they take."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from unittest.mock import patch

from command_line import Finished, pe

MOST_LINES = 15
MOST_SECONDS = 30
MOST_MIB = 2048
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir": (0,), "os.rmdir": (0,), "os.remove": (0,), "os.truncate": (0,), "os.rename": (0, 1)}
_CHANGES |= {"os.link": (1,), "os.symlink": (1,)}
_PATHS = (str, bytes, os.PathLike)
_NEVER = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "pickle.find_class")


class TooLong(BaseException):
    """A command that should have answered long ago."""


@dataclass(frozen=True)
class Seen:
    """How a command ended (`accepted`, `failed`, `refused` or `traceback`), and all that is wrong with that."""

    outcome: str
    faults: tuple[str, ...]
    mib: float
    """By how much it raised the peak of resident memory."""
    done: Finished | None = None


@dataclass
class Audit:
    """What the interpreter says of files that are written, and of programs, connections and pickles."""

    folder: Path
    found: list[str]

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NEVER:
            self.found.append(f"{event} {arguments!r}")
        elif event == "open":
            if isinstance(arguments[0], _PATHS) and arguments[2] & _WRITING:
                self.written(os.path.realpath(os.fsdecode(arguments[0])))
        else:
            for place in _CHANGES.get(event, ()):
                if not isinstance(arguments[place], _PATHS):
                    continue
                parent, name = os.path.split(os.path.abspath(os.fsdecode(arguments[place])))
                self.written(os.path.join(os.path.realpath(parent), name))

    def written(self, path: str) -> None:
        if not Path(path).is_relative_to(self.folder) and path != os.devnull:
            self.found.append(f"written outside of the folder: {path}")


_listening: list[Audit] = []
_installed: list[bool] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    for audit in _listening:
        audit.hear(event, arguments)


@contextmanager
def audited(folder: Path) -> Iterator[list[str]]:
    """What happens inside and should not: anything written outside of the folder, programs, connections, pickles."""
    if not _installed:  # a hook of the interpreter cannot be taken away
        sys.addaudithook(_hear)
        _installed.append(True)
    audit = Audit(Path(os.path.realpath(folder)), [])
    _listening.append(audit)
    try:
        with patch.object(sys, "dont_write_bytecode", True):  # of what is imported inside
            yield audit.found
    finally:
        _listening.remove(audit)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """TooLong for what takes more of the processor, or ten times as long by the clock, as where it waits."""

    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise TooLong(f"more than {seconds} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 10 * seconds)}
    before = {number: signal.signal(number, ring) for number in timers}
    for timer, most in timers.values():
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def watched(folder: Path, arguments: Sequence[object]) -> Seen:
    """`pe ARGUMENTS`, which may write in the folder alone."""
    peak, done, faults = peak_mib(), None, []
    with audited(folder) as strange:
        try:
            with limited(MOST_SECONDS):
                done = pe(*arguments)
        except (Exception, TooLong) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            faults.append(f"{error!r:.300} in {place.filename}:{place.lineno}")
    grown = peak_mib() - peak
    if grown > MOST_MIB:
        faults.append(f"{grown:.0f} MiB more than before")
    faults += strange
    if done is None:
        return Seen("traceback", tuple(faults), grown)
    if done.code == 130:
        raise KeyboardInterrupt
    faults += answered_badly(done)
    outcome = {0: "accepted", 1: "failed", 2: "refused"}.get(done.code, "traceback")
    return Seen("traceback" if "Traceback" in done.err else outcome, tuple(faults), grown, done)


def answered_badly(done: Finished) -> list[str]:
    """What is wrong with an answer: its code, a traceback, a long message, results beside a refusal."""
    faults = []
    if done.code not in (0, 1, 2):
        faults.append(f"exit code {done.code}")
    if "Traceback" in done.err + done.out:
        faults.append("a traceback")
    if done.code == 0:
        return faults
    lines = done.err.removesuffix("\n").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        faults.append("no line begins with 'error: '")
    elif len(lines) - starts[0] > MOST_LINES:
        faults.append(f"a message of {len(lines) - starts[0]} lines")
    if done.code == 2 and done.out:
        faults.append("results beside a refusal")
    return faults


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
