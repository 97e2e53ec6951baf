"""What people see: results on standard output, progress and messages on standard error. Nothing else prints.

Rich draws on terminals, and only there. Whether a stream is one is asked of the stream alone: COLUMNS,
FORCE_COLOR and the like change nothing in a redirected stream.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

import rich.console
from rich.text import Text

from pe_cli import files
from pe_cli.errors import short
from pe_cli.progress import Bars, Display, Lines
from pe_cli.streams import Stream
from pe_cli.tables import ASCII, LINE, Column, Grid, identifying, one_line, printable

_DUMB = ("dumb", "unknown")


class Console:
    """Where every command reports. One per process; `quiet` silences notes and progress."""

    def __init__(self, quiet: bool = False) -> None:
        self.out = Stream(sys.stdout, holds_results=True)
        self.err = Stream(sys.stderr, holds_results=False)
        self.quiet = quiet
        self._err_terminal = terminal(self.err) if self.err.isatty() else None
        self._bars: Bars | None = None

    def result(self, text: str) -> None:
        """A line of results, exactly as given but on a terminal, which must not obey what stands in a text."""
        with self._bars_away():
            self.out.write((printable(text, self.out.encoding) if self.out.isatty() else text) + "\n")

    def json(self, obj: Any) -> None:
        """Strict JSON. Escaped where the encoding is not UTF-8, for JSON knows no other."""
        text = files.json_text(obj)
        if text.encode(self.out.encoding, "replace") != text.encode("utf-8", "backslashreplace"):
            text = json.dumps(files.plain(obj), indent=2, allow_nan=False) + "\n"
        with self._bars_away():
            self.out.write(text)

    def table(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Sequence[Column],
        title: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """A key that a row lacks is a missing value, shown as `-`, like None and NaN."""
        values = [[row.get(column.key) for row in rows] for column in columns]
        texts = [[column.heading, *map(column.text, cells)] for column, cells in zip(columns, values, strict=True)]
        grid = Grid(
            [[one_line(text, self.out.encoding) for text in cells] for cells in texts],
            [column.right(cells) for column, cells in zip(columns, values, strict=True)],
            identifying(values),
        )
        around = [printable(text, self.out.encoding) for text in (title or "", *notes)]
        if not self.out.isatty():
            self.result("\n".join([*around[: bool(title)], *grid.plain(), *around[1:]]))
            return
        with self._bars_away():
            screen = terminal(self.out)
            if title:
                screen.print(Text(around[0], style="bold"))
            rule = LINE if screen.encoding.startswith("utf") else ASCII
            for number, part in enumerate(grid.parts(screen.width)):
                wide = terminal(self.out, max(screen.width, part.width()))
                if number > 0:
                    wide.line()
                wide.print(part.drawn(screen.width, rule))
            for note in around[1:]:
                screen.print(Text(note))

    def note(self, text: str) -> None:
        """A message about what goes on, unless `quiet`."""
        if not self.quiet:
            self._message("", "", text)

    def warn(self, text: str) -> None:
        self._message("warning: ", "yellow", text)

    def error(self, text: str) -> None:
        self._message("error: ", "bold red", short(text))

    @contextmanager
    def display(self, label: str = "", total: int = 0) -> Iterator[Display]:
        """The progress of things by key; `label` and `total` (`runs`, 12) add a bar of those finished."""
        if self.quiet:
            yield Display(self.note)
        elif self._err_terminal is None or os.environ.get("TERM", "").lower() in _DUMB:
            yield Lines(self.note)
        else:
            try:
                with Bars(self.note, self._err_terminal, label, total) as self._bars:
                    yield self._bars
            finally:
                self._bars = None

    def restore(self) -> None:
        """Bring the cursor back, for a process about to end without unwinding. It takes no lock."""
        if self._bars is not None:
            os.write(self.err.fileno(), b"\n\x1b[?25h")

    def _message(self, prefix: str, style: str, text: str) -> None:
        text = printable(text, self.err.encoding)
        if self._err_terminal is None:
            self.err.write(f"{prefix}{text}\n")
        else:
            self._err_terminal.print(Text.assemble((prefix, style), text), soft_wrap=True)

    @contextmanager
    def _bars_away(self) -> Iterator[None]:
        """Results on a terminal are not written into the bars."""
        if self._bars is None or not self.out.isatty():
            yield
        else:
            with self._bars.away():
                yield


def terminal(stream: Stream, width: int | None = None) -> rich.console.Console:
    return rich.console.Console(
        file=cast(IO[str], stream),
        force_terminal=True,
        force_interactive=True,
        force_jupyter=False,
        highlight=False,
        markup=False,
        emoji=False,
        width=width,
    )
