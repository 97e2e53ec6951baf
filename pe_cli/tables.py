"""Tables as text: what a value looks like, and how columns share a width."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.box import Box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

MISSING = "-"
NAME_CELLS = 20
"""A column of text is not folded to fewer terminal cells than this."""
_GAP = 2
_RULE = "    \n    \n -- \n    \n    \n    \n    \n    \n"
LINE, ASCII = Box(_RULE.replace("-", "─")), Box(_RULE, ascii=True)
"""Below the headings; the second for terminals whose encoding has no lines."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Column:
    """A column of a table: the key in each row, its heading, and how a value is written.

    `format` is a format specification for numbers, or a function that turns any value but a missing one into
    text. Without `justify`, a column of numbers alone is set to the right.
    """

    key: str
    heading: str
    format: str | Callable[[Any], str] = ""
    justify: Literal["left", "right"] | None = None

    def text(self, value: Any) -> str:
        if missing(value):
            return MISSING
        if callable(self.format):
            return self.format(value)
        return format(value, self.format) if numeric(value) else str(value)

    def right(self, values: Sequence[Any]) -> bool:
        if self.justify is not None:
            return self.justify == "right"
        return all(numeric(value) for value in values if not missing(value))


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def numeric(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def identifying(columns: Sequence[Sequence[Any]]) -> int:
    """How many columns at the left tell the rows apart: names, lengths and seeds, up to what is measured."""
    measured = [any(isinstance(value, float | np.floating) for value in values) for values in columns]
    return measured.index(True) if any(measured) else min(1, len(columns))


@dataclass(frozen=True)
class Grid:
    """The text of a table by column, headings first; which columns are set to the right; how many at the left
    tell the rows apart."""

    columns: list[list[str]]
    right: list[bool]
    keys: int

    def natural(self) -> list[int]:
        return [max(map(cell_len, cells)) for cells in self.columns]

    def least(self) -> list[int]:
        """Cells that each column needs: numbers stay whole, headings and names fold."""
        needs = []
        for cells, right, natural in zip(self.columns, self.right, self.natural(), strict=True):
            words = max(map(cell_len, cells[0].split()), default=0)
            body = max(map(cell_len, cells[1:]), default=0) if right else min(natural, NAME_CELLS)
            needs.append(max(words, body))
        return needs

    def width(self) -> int:
        return sum(self.least()) + _GAP * (len(self.columns) - 1)

    def plain(self) -> list[str]:
        widths = self.natural()
        padded = []
        for (heading, *body), width, right in zip(self.columns, widths, self.right, strict=True):
            cells = [heading, "-" * width, *body]
            blanks = [" " * (width - cell_len(cell)) for cell in cells]
            padded.append([b + c if right else c + b for b, c in zip(blanks, cells, strict=True)])
        return [(" " * _GAP).join(line).rstrip() for line in zip(*padded, strict=True)]

    def parts(self, available: int) -> list[Grid]:
        """Tables that fit the width: the columns in turn, each time after those that tell the rows apart."""
        keys = list(range(self.keys))
        parts, chosen = [], keys
        for index in range(self.keys, len(self.columns)):
            if len(chosen) > self.keys and self.of([*chosen, index]).width() > available:
                parts.append(self.of(chosen))
                chosen = keys
            chosen = [*chosen, index]
        return [*parts, self.of(chosen)]

    def of(self, chosen: Sequence[int]) -> Grid:
        return Grid([self.columns[i] for i in chosen], [self.right[i] for i in chosen], self.keys)

    def drawn(self, available: int, rule: Box) -> Table:
        widths, least = self.natural(), self.least()
        while sum(widths) + _GAP * (len(widths) - 1) > available and widths != least:
            spare = [width if width > need else 0 for width, need in zip(widths, least, strict=True)]
            widths[spare.index(max(spare))] -= 1
        table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for cells, width, right in zip(self.columns, widths, self.right, strict=True):
            justify: Literal["left", "right"] = "right" if right else "left"
            table.add_column(Text(cells[0]), width=width, justify=justify, overflow="fold")
        for row in zip(*(cells[1:] for cells in self.columns), strict=True):
            table.add_row(*map(Text, row))
        return table


def printable(text: str, encoding: str) -> str:
    """`text` with its control characters, and those that the encoding lacks, as escapes. Lines stay lines."""
    text = _CONTROL.sub(_escape, text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def one_line(text: str, encoding: str) -> str:
    return printable(text, encoding).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()
