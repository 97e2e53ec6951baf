"""Who may write results: one process at a time, for as long as it lives. Reading takes no lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pe_cli import files
from pe_cli.errors import Busy


def _lock_path(path: Path) -> Path:
    """Outside the run directory, which is for results; the file stays, the lock ends with its process."""
    return path.absolute().parent / ".locks" / f"{path.name}.lock"


def acquire(path: Path, seconds: float, taken: str | None = None) -> FileLock:
    """The lock of a run, or of what is `taken`. Busy where another process still holds it after this time."""
    lock_path = _lock_path(path)
    with files.failing("lock", lock_path):
        lock_path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_path, thread_local=False, fallback_to_soft=False)  # a file alone would outlive a kill
        try:
            lock.acquire(timeout=seconds)
        except Timeout as error:
            what = taken or f"training or evaluating this run: {path.absolute()}"
            raise Busy(f"another process is {what}") from error
    return lock


@contextmanager
def held(root: Path, report: Path) -> Iterator[None]:
    """Nobody else makes this report of the runs in `root` meanwhile, with whose locks its own lies. Busy if so."""
    lock = acquire(root / f"report {report.name}", 0, f"making this: {report.absolute()}")
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds it now."""
    lock_path = _lock_path(path)
    if not lock_path.exists():
        return False
    try:
        with FileLock(lock_path, timeout=0, fallback_to_soft=False):
            return False
    except OSError:  # held (Timeout is one), or not ours to open: then run.json is believed
        return True
