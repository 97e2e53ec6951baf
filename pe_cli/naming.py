"""What run directories are called, and which there are."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path

from pe_cli.errors import ConfigError

ROOT = Path("results/runs")
_LONGEST_NAME = 200  # bytes; file systems allow 255, and hash, seed and endings follow


def run_directory_name(name: str, identity: str, seed: int) -> str:
    """`<name>-<identity>-s<seed>`. ConfigError for a name that no directory can have."""
    if not name or "/" in name or "\0" in name:
        raise ConfigError(f"name {name!r} cannot be the name of a directory: use a text without '/'")
    try:
        length = len(os.fsencode(name))
    except UnicodeEncodeError:
        codec = sys.getfilesystemencoding()
        raise ConfigError(f"name {name!r} cannot be the name of a directory here, where names are {codec}") from None
    if length > _LONGEST_NAME:
        raise ConfigError(f"name {name[:20]!r}… is too long: use at most {_LONGEST_NAME} bytes")
    return f"{name}-{identity}-s{seed}"


def known(root: Path = ROOT) -> list[str]:
    """Names of the run directories in `root`, the last written first."""
    found = [path.parent for path in root.glob("*/run.json") if not path.parent.is_symlink()]
    return [path.name for path in sorted(found, key=_written, reverse=True)]


def near(name: str, root: Path = ROOT) -> list[str]:
    """The runs that begin with a name, else the one that is most like it."""
    names = known(root)
    beginning = [other for other in names if name and other.startswith(name)]
    return beginning or difflib.get_close_matches(name, names, n=1, cutoff=0.6)


def suggest(name: str, root: Path) -> str:
    """What an error adds about a run that is not there: the one that was meant, or the newest."""
    names = known(root)
    if alike := near(name, root):
        return f"; did you mean '{alike[0]}'?"
    if names:
        return f"; the newest runs in {root}: {', '.join(names[:3])}"
    return f"; there are no runs in {root.absolute()}"


def _written(path: Path) -> float:
    try:
        return (path / "run.json").stat().st_mtime
    except FileNotFoundError:  # removed since it was listed
        return 0.0
