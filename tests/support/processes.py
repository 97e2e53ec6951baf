"""The processes of a command: it is started in a session of its own, and Linux tells who belongs to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "pe_cli"]


def started(*arguments: object, **more: Any) -> subprocess.Popen[str]:
    """`pe ARGUMENTS` as the first process of a new session; `more` is for Popen."""
    return subprocess.Popen([*COMMAND, *map(str, arguments)], text=True, start_new_session=True, **more)


def members(session: int) -> list[int]:
    """The living processes of a session, the first one first."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, own = path.read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(int(path.parent.name))
    return sorted(found)


def words(process: int) -> str:
    """Its command line, empty where it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    return ""


def kill_all(session: int, number: int = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, number)


def kill_one(process: int, number: int = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def until(condition: Callable[[], Any], seconds: float = 300.0) -> Any:
    """What a condition says once it says something; AssertionError after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)
    return found
