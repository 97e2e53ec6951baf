"""`pe list`: what exists, as tables or as JSON. It is asked often, and imports no more than it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from pe_cli.catalogue import catalogue
from pe_cli.console import Console
from pe_cli.documents import Table
from pe_cli.errors import ConfigError
from pe_cli.tables import Column

COLUMNS = {
    "name": "name",
    "family": "family",
    "year": "year",
    "line": "what it does",
    "counted": "length counts",
    "parameters": "parameters",
    "options": "options and defaults",
    "needs": "needs",
    "reference": "reference",
}
"""The columns of `pe list`, of which each kind of thing has some, and their headings."""


def list_(what: str | None, json: bool, markdown: bool) -> None:
    one_form(json, markdown)
    console = Console()
    found = catalogue(what)
    if json:
        console.json(next(iter(found.values())) if what else found)
        return
    for kind, rows in found.items():
        table = listed(kind, rows)
        if not rows:
            console.result(f"{kind}: none yet")
        elif markdown:
            console.result(table.markdown())
        else:
            console.table(table.rows, table.columns, table.title, table.notes)
            console.result("")


def one_form(json: bool, markdown: bool) -> None:
    if json and markdown:
        raise ConfigError("--json and --markdown are two forms of one output: give one of them")


def listed(kind: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The table of one kind of thing. The parameters of an encoding are those at the default sizes of a model."""
    flat = [{**row, "options": option_text(row.get("options", {})) or None} for row in rows]
    columns = [
        Column(key, heading, "" if key == "year" else ",")
        for key, heading in COLUMNS.items()
        if any(row.get(key) not in (None, "") for row in flat)
    ]
    return Table(kind, columns, flat)


def option_text(options: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(f"{name}: {written(entry['default'])}" for name, entry in options.items())


def written(default: Any) -> str:
    """A default as YAML has it. An encoding, alone or in a list, is named; `pe list --json` has all of it."""
    if isinstance(default, list):
        return f"[{', '.join(map(written, default))}]"
    if isinstance(default, Mapping):
        return str(default["name"])
    return default if isinstance(default, str) and default.isidentifier() else dumps(default)
