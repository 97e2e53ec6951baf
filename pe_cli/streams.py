"""The standard streams, so that no character and no reader that has gone can stop the work."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from pe_cli.errors import RunError


class Stream(io.TextIOBase):
    """A standard stream that takes any character, and loses its reader without a fuss.

    A character that its encoding lacks is written as an escape. After the reader has gone (`pe … | head`)
    what is written goes nowhere, and the work goes on. Results that cannot be written for another cause are a
    RunError.
    """

    def __init__(self, file: TextIO | None, holds_results: bool) -> None:
        self.file = io.StringIO() if file is None else file
        self.holds_results = holds_results
        self.lost = file is None  # closed before Python started (`>&-`)
        try:
            escape_unknown(self.file)
        except OSError:  # it still holds what a full disk did not take
            self.lost = True
            discard(self.file)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.file.encoding or "utf-8"

    def isatty(self) -> bool:
        return self.file.isatty()

    def fileno(self) -> int:
        return self.file.fileno()

    def write(self, text: str) -> int:
        if self.lost:
            return len(text)
        try:
            self.file.write(text)
            self.file.flush()
        except OSError as error:
            self.lost = True
            discard(self.file)
            if self.holds_results and not isinstance(error, BrokenPipeError):
                raise RunError(f"cannot write to standard output: {error.strerror or error}") from error
        return len(text)


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """Around everything: what is written past the Console (`--help`) cannot fail on a character either, nor
    complain at the end that its reader has gone."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]
    for stream in streams:
        escape_unknown(stream)
    try:
        yield
    finally:
        for stream in streams:
            try:
                stream.flush()
            except OSError:
                discard(stream)


def escape_unknown(stream: TextIO) -> None:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def discard(stream: TextIO) -> None:
    """Send what is still in the buffer of `stream`, and what follows, nowhere."""
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:
        return  # no file beneath
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
