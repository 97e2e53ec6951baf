"""Whole-file atomic writing: a reader, or the next process after a kill, sees the old file or the new one."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import platform
import secrets
import stat
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
# What a kill left behind is removed by the next writer of the same file: at once where the process that wrote it is
# known to be gone, else after a time that no single write takes.
_ABANDONED_SECONDS = 3600.0
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_unfinished: set[Path] = set()


def read_bytes(path: Path) -> bytes:
    """The content of a file. RunError where there is none, or something that may have no end, such as a pipe."""
    with failing("read", path):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a directory is refused in its own words
            raise OSError("it is not a regular file")
        return path.read_bytes()


def write_bytes(path: Path, data: bytes, previous: Path | None = None) -> None:
    """Replace `path` by `data`, or leave it untouched and raise RunError with the file and the cause.

    What it held before is then found at `previous`, if that is given and the file system knows links.
    """
    with failing("write", path):
        remove_abandoned(path)
        with _temporary(path) as temporary:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if previous is not None and path.is_file():
                with suppress(OSError), _temporary(previous) as link:
                    os.link(path, link)
                    os.replace(link, previous)
            _commit(temporary, path)


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
        remove_abandoned(path)
        with _temporary(path) as temporary:
            os.symlink(target, temporary)
            _commit(temporary, path)


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


def unobstructed(directory: Path, names: Iterable[str]) -> None:
    """RunError where a directory is in the way of one of the files that will be written in `directory`."""
    for path in map(directory.joinpath, names):
        if path.is_dir() and not path.is_symlink():  # a link is replaced
            raise RunError(f"cannot write {path.absolute()}: {_CAUSES[errno.EISDIR]}")


def writable(directory: Path, names: Iterable[str] = (), size: int = 4096) -> None:
    """Make `directory`, write `size` bytes there and take them away again: RunError now, not after an hour of work.

    `names`: of the files that will be written there, see `unobstructed`.
    """
    unobstructed(directory, names)
    with in_directory(directory, "write in"), failing("write in", directory):
        remove_abandoned(directory / "probe")
        with _temporary(directory / "probe") as path, open(path, "xb") as file:
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


def remove(path: Path) -> None:
    """Remove a file, if it is there. RunError with the file and the cause."""
    with failing("remove", path):
        path.unlink(missing_ok=True)


def remove_temporaries(path: Path) -> None:
    """Remove what killed writers of `path` left. Only for the one process that may write `path`."""
    for temporary in _temporaries(path):
        temporary.unlink(missing_ok=True)


def remove_abandoned(path: Path) -> None:
    """The same where others may be writing `path`: of writers that are gone, or can only be gone by now."""
    for temporary in _temporaries(path):
        with suppress(FileNotFoundError):  # its writer, or another one who tidies, was quicker
            if _writer_is_gone(temporary) or time.time() - temporary.lstat().st_mtime > _ABANDONED_SECONDS:
                temporary.unlink()


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
    temporary = path.with_name(f".{path.name}.{_HOST}-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _unfinished.add(temporary)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def _temporaries(path: Path) -> list[Path]:
    with os.scandir(path.parent) as entries:
        names = [entry.name for entry in entries]
    return [path.with_name(name) for name in names if name.startswith(f".{path.name}.") and name.endswith(".tmp")]


def _writer_is_gone(temporary: Path) -> bool:
    host, _, number = temporary.name.split(".")[-2].rpartition("-")[0].partition("-")
    if host != _HOST or not number.isdecimal() or os.name == "nt":  # another machine that shares the directory
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it lives and is somebody else's, or is no process at all
        return False
    return False


def _commit(temporary: Path, path: Path) -> None:
    """The new name, also after a loss of power: a directory is on the disk only when it is told to be."""
    os.replace(temporary, path)
    if not hasattr(os, "O_DIRECTORY"):  # no directory can be opened here
        return
    with suppress(OSError):  # some network file systems do not know it of directories
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
