"""Whole-file atomic writing: a reader, or the next process after a kill, sees the old file or the new one."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pe_cli.errors import RunError

_CAUSES = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "no space left: the disk quota is used up",
    errno.EFBIG: "no space: the file would be larger than the limit on file sizes (ulimit -f)",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EEXIST: "a file that is not a directory is in the way",
    errno.EISDIR: "a directory is in the way",
    errno.ENOENT: "there is no such file or directory",
    errno.ENAMETOOLONG: "the name is too long",
}
# What a kill left behind is removed by the next writer of the same file; no single write takes this long.
_ABANDONED_SECONDS = 3600.0
_unfinished: set[Path] = set()


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, or leave it untouched and raise RunError with the file and the cause."""
    with failing("write", path):
        _remove_temporaries(path, older_than=_ABANDONED_SECONDS)
        with _temporary(path) as temporary:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)


def write_text(path: Path, text: str) -> None:
    """UTF-8. What UTF-8 cannot hold (a file name of foreign bytes) becomes JSON's escape `\\udc..`."""
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_json(path: Path, obj: Any) -> None:
    """Strict JSON, see `json_text`."""
    write_text(path, json_text(obj))


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A header and a line per row. A key that a row lacks is an empty field; one too many is a ValueError."""
    rows = list(rows)
    text = _csv_text(rows, columns, csv.QUOTE_MINIMAL)
    if "\r" in text:  # before Python 3.13 it is written bare, and readers take it for the end of a line
        text = _csv_text(rows, columns, csv.QUOTE_ALL)
    write_text(path, text)


def write_link(path: Path, target: str) -> None:
    """Make `path` a symbolic link to `target`, in place of an older link."""
    with failing("write", path):
        _remove_temporaries(path, older_than=_ABANDONED_SECONDS)
        with _temporary(path) as temporary:
            os.symlink(target, temporary)
            os.replace(temporary, path)


def json_text(obj: Any) -> str:
    """JSON that any parser accepts: numbers that are not finite become null, NumPy scalars plain numbers."""
    return json.dumps(plain(obj), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain(obj: Any) -> Any:
    """`obj` as a JSON file gives it back."""
    if isinstance(obj, Mapping):
        return {str(key): plain(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [plain(value) for value in obj]
    if isinstance(obj, np.generic):
        obj = obj.item()
    if isinstance(obj, float) and not math.isfinite(obj):
        return None
    return obj


def probe(directory: Path, size: int) -> None:
    """Make `directory`, write `size` bytes there and take them away again; RunError if that fails."""
    with in_directory(directory, "write in"), failing("write in", directory):
        temporary = _temporary(directory / "probe")
        with temporary as path, open(path, "xb") as file:
            file.write(b"\0" * size)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def in_directory(directory: Path, verb: str = "make") -> Iterator[None]:
    """Makes a directory for what is done inside; where that fails, no directory is left that was not there.

    A directory that cannot be made is one that could not be `verb`ed in: RunError.
    """
    around = (directory, *directory.parents)
    missing = [path for path in around if not os.path.lexists(path)]  # from the innermost on
    try:
        with failing(verb, directory):
            directory.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):  # never made, or somebody has put something there
                path.rmdir()
        raise


@contextmanager
def failing(verb: str, path: Path) -> Iterator[None]:
    """Turns an OSError inside into `cannot VERB PATH: cause` (RunError)."""
    try:
        yield
    except OSError as error:
        cause = _CAUSES.get(error.errno or 0) or error.strerror or str(error)
        raise RunError(f"cannot {verb} {os.path.abspath(path)}: {cause}") from error


def remove_temporaries(path: Path) -> None:
    """Remove what killed writers of `path` left. Only for the one process that may write `path`."""
    _remove_temporaries(path, older_than=-math.inf)


def is_temporary(path: Path) -> bool:
    """Whether the name is one that an unfinished write has."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def abandon() -> None:
    """Remove this process's unfinished files, just before it ends without unwinding."""
    for temporary in list(_unfinished):
        temporary.unlink(missing_ok=True)


def _csv_text(rows: list[Mapping[str, Any]], columns: Sequence[str], quoting: Literal[0, 1]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n", quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A name beside `path` that nobody else has; nothing of that name is left afterwards.

    Not from `tempfile`: its files are private to the user, and results are meant to be read by others.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _unfinished.add(temporary)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def _remove_temporaries(path: Path, older_than: float) -> None:
    with os.scandir(path.parent) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        if not (name.startswith(f".{path.name}.") and name.endswith(".tmp")):
            continue
        temporary = path.with_name(name)
        try:
            if time.time() - temporary.lstat().st_mtime > older_than:
                temporary.unlink()
        except FileNotFoundError:  # its writer, or another one who tidies, was quicker
            continue
