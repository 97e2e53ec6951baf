"""Directories that may be read and not written, also where the tests are run by root."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """An empty folder that every user can come to; those of pytest are their owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def sealed(folder: Path) -> Iterator[None]:
    """Nothing can be written in `folder` and below. Root, who may write everywhere, is somebody else inside."""
    directories = [folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())]
    for path in directories:
        path.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for path in directories:
            path.chmod(0o755)
