"""Tables for a terminal or a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pe_cli.tables import Column


@dataclass(frozen=True)
class Table:
    """A table for a terminal or a file."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()

    def markdown(self, level: int = 2) -> str:
        notes = "".join(f"\n* {escaped(note)}" for note in self.notes)
        return f"{'#' * level} {escaped(self.title)}\n\n{markdown(self.rows, self.columns)}{notes}\n"


def document(title: str, tables: Sequence[Table]) -> str:
    """A Markdown file."""
    return f"# {escaped(title)}\n\n" + "\n".join(table.markdown() for table in tables)


def markdown(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> str:
    """A Markdown table; columns of numbers are set to the right."""
    values = [[row.get(column.key) for row in rows] for column in columns]
    right = [column.right(cells) for column, cells in zip(columns, values, strict=True)]
    lines = [
        [escaped(column.heading) for column in columns],
        ["---:" if aligned else "---" for aligned in right],
        *([escaped(column.text(row.get(column.key))) for column in columns] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
