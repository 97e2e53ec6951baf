"""How far things are: bars on a terminal, now and then a line elsewhere, or nothing."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pe_cli.tables import one_line

LINE_SECONDS = 10.0
"""A key has no more than one line in this time, its first and its last line apart."""
_GAP = 2
_NAME_LEAST = 16
_BAR_LEAST, _BAR_MOST = 10, 40


@dataclass
class Task:
    """A thing in progress. `started` and `first` say when it was first heard of, and where it stood then."""

    started: float
    first: int
    done: int
    total: int
    detail: str = ""
    left: float | None = None
    printed: float | None = None

    @property
    def ended(self) -> bool:
        return self.done >= self.total

    @property
    def fraction(self) -> float:
        return 1.0 if self.ended else self.done / self.total


class Display:
    """Shows nothing, and has what every display has. Any thread may call it."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.lock = threading.Lock()
        self.tasks: dict[str, Task] = {}

    def update(self, key: str, done: int, total: int, detail: str = "", seconds_left: float | None = None) -> None:
        """`key` has come to `done` of `total`. The time left follows from its pace unless it is given.

        A key that starts again or changes its total (trained, now evaluated) is taken for a new one.
        """
        now = time.monotonic()
        with self.lock:
            task = self.tasks.get(key)
            if task is None or task.total != total or done < task.done:
                task = self.tasks[key] = Task(now, done, done, total)
            task.done, task.detail = done, detail
            if seconds_left is None:
                seconds_left = pace(now - task.started, done - task.first, total - done)
            task.left = seconds_left
            line = self.line(key, task, now)
        if line is not None:
            self.note(line)

    def finish(self, key: str, line: str | None = None) -> None:
        """`key` is over; `line` says how it ended."""
        with self.lock:
            self.tasks.pop(key, None)
        if line is not None:
            self.note(line)

    def line(self, key: str, task: Task, now: float) -> str | None:
        """What to print for an update."""
        return None


class Lines(Display):
    """Plain lines for a log: a key's first, its last, and one in ten seconds between."""

    def line(self, key: str, task: Task, now: float) -> str | None:
        if task.printed is not None and not task.ended and now - task.printed < LINE_SECONDS:
            return None
        if task.printed == math.inf:
            return None
        task.printed = math.inf if task.ended else now
        left = "" if task.left is None or task.ended else f"{clock(task.left)} left"
        parts = [f"{task.done} of {task.total} ({task.fraction:.0%})", task.detail, left]
        return f"{key}: {', '.join(part for part in parts if part)}"


class Bars(Display):
    """A bar per key at the bottom of the terminal, below the notes."""

    def __init__(self, note: Callable[[str], None], screen: Console, label: str, total: int) -> None:
        super().__init__(note)
        self.screen, self.label, self.total = screen, label, total
        self.finished = 0
        self.began = time.monotonic()
        self.live = self.new_live()

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.live.stop()

    def finish(self, key: str, line: str | None = None) -> None:
        with self.lock:
            self.finished += 1
        super().finish(key, line)

    @contextmanager
    def away(self) -> Iterator[None]:
        """The terminal without bars, for something else to be written on it."""
        self.live.stop()
        try:
            yield
        finally:
            self.live = self.new_live()  # the old one would go up to where its bars were
            self.live.start()

    def new_live(self) -> Live:
        return Live(
            console=self.screen,
            get_renderable=self.render,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,  # Rich would send it to this console, which is stderr
        )

    def render(self) -> Table:
        """As many bars as the terminal has lines for, and the one of the whole."""
        with self.lock:
            rows = [Row(key, task.fraction, task.detail, task.left) for key, task in self.tasks.items()]
            done = min(self.total, self.finished + sum(task.fraction for task in self.tasks.values()))
        del rows[max(1, self.screen.height - 3) :]
        if self.total > 1:
            left = pace(time.monotonic() - self.began, done, self.total - done)
            rows.append(Row(self.label, done / self.total, f"{self.finished} of {self.total}", left))
        encoding = self.screen.encoding
        rows = [row._replace(name=one_line(row.name, encoding)) for row in rows]
        return drawn(rows, self.screen.width)


class Row(NamedTuple):
    """What a bar shows."""

    name: str
    share: float
    detail: str
    left: float | None


def drawn(rows: list[Row], width: int) -> Table:
    """Name, bar, percentage, detail and time left; the detail goes where there is no room for all."""
    times = ["" if row.left is None else clock(row.left) for row in rows]
    details = max((cell_len(row.detail) for row in rows), default=0)
    room = width - len("100%") - max(map(len, times), default=0) - 3 * _GAP
    if room - details - _GAP < _NAME_LEAST + _BAR_LEAST:
        rows = [row._replace(detail="") for row in rows]
    elif details:
        room -= details + _GAP
    names = max((cell_len(row.name) for row in rows), default=0)
    bar = min(_BAR_MOST, max(_BAR_LEAST, room - names))
    table = Table.grid(padding=(0, _GAP, 0, 0))
    justify: Literal["left", "right"]
    for justify in ("left", "left", "right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    for row, left in zip(rows, times, strict=True):
        line = ProgressBar(total=1.0, completed=min(row.share, 1.0), width=bar)
        table.add_row(Text(shortened(row.name, room - bar)), line, f"{row.share:.0%}", Text(row.detail), left)
    return table


def shortened(name: str, cells: int) -> str:
    """Both ends of a name that is too long: runs of one config differ in their last characters."""
    if cell_len(name) <= cells or cells < 8:
        return name
    head = (cells - 2) // 2
    return f"{name[:head]}..{name[len(name) - (cells - 2 - head) :]}"


def pace(seconds: float, done: float, left: float) -> float | None:
    """Seconds to go, or None before anything is done."""
    return seconds / done * left if done > 0 else None


def clock(seconds: float) -> str:
    """`0:01:23`"""
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
