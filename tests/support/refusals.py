"""Bad input, given to the program in a folder that must be as before."""

from __future__ import annotations

import hashlib
from pathlib import Path

from command_line import Finished, pe
from small_runs import refused


def contents(folder: Path) -> dict[str, str]:
    """Every path below a folder, with the hash of a file and the target of a link."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[str(path)] = str(path.readlink())
        else:
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "other"
    return found


def refuses(folder: Path, arguments: list[str], *parts: str) -> Finished:
    """`pe ARGUMENTS` is refused with one message that has all these parts, and nothing is left in the folder."""
    before = contents(folder)
    done = pe(*arguments)
    first, _, rest = done.err.partition("\n")
    note = not first.startswith("error: ")  # which run was taken stands before what is wrong with it
    refused(Finished(done.code, done.out, rest if note else done.err), *parts)
    assert contents(folder) == before
    return done
