"""Who may write a run directory: one process at a time, for as long as it lives."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from pe_cli import files
from pe_cli.errors import RunError


def _lock_path(path: Path) -> Path:
    """Outside the run directory, which is for results; the file stays, the lock ends with its process."""
    return path.absolute().parent / ".locks" / f"{path.name}.lock"


def acquire(path: Path, seconds: float) -> FileLock:
    """The lock of a run. RunError where another process still holds it after this time."""
    lock_path = _lock_path(path)
    with files.failing("lock", lock_path):
        lock_path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_path, thread_local=False)
        try:
            lock.acquire(timeout=seconds)
        except Timeout as error:
            raise RunError(f"another process is training this run: {path.absolute()}") from error
    return lock


def is_locked(path: Path) -> bool:
    """Whether a process holds it now."""
    lock_path = _lock_path(path)
    if not lock_path.exists():
        return False
    try:
        with FileLock(lock_path, timeout=0):
            return False
    except OSError:  # held (Timeout is one), or not ours to open: then run.json is believed
        return True
