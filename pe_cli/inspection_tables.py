"""The facts about an encoding as tables for a terminal: cells of text, big matrices by their first corner."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

COUNTED = {
    "buckets": "distance",
    "rows": "distance",
    "slopes": "head",
    "decays": "head",
    "compressions": "head",
    "r1": "head",
    "r2": "head",
    "thresholds": "layer",
    "scales": "layer",
    "inverse_frequencies": "pair",
    "wavelengths": "pair",
    "zeta": "pair",
}
"""What the entries of a list belong to; others are only numbered."""
CORNER = 8
LISTED = 40
PICTURED = 64
LEFT_OUT = "…"


class Table(NamedTuple):
    """One table. Every cell is text, and no number in it is cut."""

    title: str
    columns: list[str]
    rows: list[dict[str, str]]


def readable(facts: Mapping[str, Any]) -> list[Table]:
    """What `inspect_encoding` returned: the single values in one table, then one for each list and matrix.

    A matrix is shown by its first 8 rows and columns, a mask as a picture of 40 queries and 64 keys, a list
    by its first 40 entries and the last one, where equal neighbours share an entry. Titles give the whole
    size, and "…" stands for what is not shown.
    """
    lists = {key: value for key, value in facts.items() if isinstance(value, list)}
    ids = lists.pop("positions", [])
    single = {key: value for key, value in facts.items() if not isinstance(value, list)}
    counted = ids == list(range(len(ids)))
    if counted:
        single["positions"] = f"0 to {len(ids) - 1}"
    text = single.pop("text", None)
    rows = [{"fact": words(key), "value": cell(value)} for key, value in single.items()]
    tables = [Table("", ["fact", "value"], rows)]
    if not counted:
        tables.append(ids_table(ids, text))
    return [*tables, *(table for key, value in lists.items() for table in tables_of(key, value, words(key)))]


def ids_table(ids: list[Any], text: str | None) -> Table:
    """A row for each character: its number, itself where ids are read from the text, and its ids."""
    named = dict(leaves(ids, "id"))
    if text is not None:
        named = {"text": [repr(character) for character in text], **named}
    length = max(len(column) for column in named.values())
    numbers = [str(number) for number in range(length)]
    columns = {"character": numbers, **{name: [cell(v) for v in column] for name, column in named.items()}}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return Table(f"positions ({length})", list(columns), shortened(rows, list(columns)))


def leaves(value: list[Any], name: str) -> Iterator[tuple[str, list[Any]]]:
    """The innermost lists, named by their place."""
    if not any(isinstance(entry, list) for entry in value):
        yield name, value
        return
    for number, entry in enumerate(value):
        yield from leaves(entry, f"{name} {number}")


def tables_of(key: str, value: list[Any], title: str) -> list[Table]:
    """One table for a list or a matrix, several for what has more axes."""
    if not any(isinstance(entry, list) for entry in value):
        return [list_table(key, value, title)]
    if not any(isinstance(item, list) for row in value for item in row):
        return [mask_table(value, title) if isinstance(value[0][0], bool) else matrix_table(value, title)]
    axis = "head" if key in ("bias", "mask") else "number"
    return [t for number, part in enumerate(value) for t in tables_of(key, part, f"{title}, {axis} {number}")]


def list_table(key: str, values: list[Any], title: str) -> Table:
    label, name = COUNTED.get(key.rpartition(".")[-1], "number"), words(key)
    rows = []
    start = 0
    for value, run in itertools.groupby(values):
        last = start + len(list(run)) - 1
        rows.append({label: str(start) if start == last else f"{start}–{last}", name: cell(value)})
        start = last + 1
    return Table(f"{title} ({len(values)})", [label, name], shortened(rows, [label, name]))


def shortened(rows: list[dict[str, str]], columns: list[str]) -> list[dict[str, str]]:
    return rows if len(rows) <= LISTED + 1 else [*rows[:LISTED], dict.fromkeys(columns, LEFT_OUT), rows[-1]]


def matrix_table(matrix: list[list[Any]], title: str) -> Table:
    width = max(len(row) for row in matrix)
    columns = ["", *(str(column) for column in range(min(width, CORNER)))]
    rows = [
        dict(zip(columns, [str(number), *(cell(value) for value in row[:CORNER])], strict=False))
        for number, row in enumerate(matrix[:CORNER])
    ]
    if width > CORNER:
        columns.append(LEFT_OUT)
        rows = [{**row, LEFT_OUT: LEFT_OUT} for row in rows]
    if len(matrix) > CORNER:
        rows.append(dict.fromkeys(columns, LEFT_OUT))
    return Table(f"{title} ({len(matrix)} × {width})", columns, rows)


def mask_table(mask: list[list[bool]], title: str) -> Table:
    columns = ["query", "keys"]
    rows = []
    for number, row in enumerate(mask):
        picture = "".join("■" if seen else "·" for seen in row[:PICTURED])
        rows.append({"query": str(number), "keys": picture + (LEFT_OUT if len(row) > PICTURED else "")})
    return Table(f"{title} ({len(mask)} × {len(mask[0])}; ■ is seen)", columns, shortened(rows, columns))


def words(key: str) -> str:
    return key.replace("_", " ")


def cell(value: Any) -> str:
    """A value as text: numbers with 7 digits (float32 has no more), blocks and lists with their entries."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, str):
        return value if value.isprintable() else repr(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {nested(inner)}" for key, inner in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(nested(inner) for inner in value)
    return str(value)


def nested(value: Any) -> str:
    return f"({cell(value)})" if isinstance(value, Mapping | list) else cell(value)
