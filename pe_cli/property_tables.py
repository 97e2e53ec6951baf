"""The measured properties of encodings as a table, and their formulas as text, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pe_cli.documents import Table, escaped
from pe_cli.inspection_tables import cell
from pe_cli.tables import Column

TITLE = "Properties of position encodings"


def small(value: Any) -> str:
    """Three digits after the point; what is not zero does not look like it."""
    return "<0.001" if 0 < value < 0.0005 else f"{value:.3f}"


COLUMNS = (
    Column("who", "encoding"),
    Column("uniqueness", "uniqueness", small),
    Column("continuity", "continuity", ".3f"),
    Column("scalability", "scalability", "d"),
    Column("scores_in_range", "scores in range", small),
    Column("relative_information", "relative information", ".3f"),
    Column("long_range_decay", "long-range decay", ".3f"),
    Column("parameters", "parameters", ",d"),
    Column("training_time", "training time", ".2f"),
    Column("evaluation_memory", "evaluation memory", ".2f"),
)
"""All that a reader compares; the rest of what was measured is in `--json`."""
BESIDE = {
    "scores_in_range": "scalability",
    "parameters": "efficiency",
    "training_time": "efficiency",
    "evaluation_memory": "efficiency",
}


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One line for each encoding or run; why a value is missing stands below."""
    shown, notes = [], []
    for who, row in zip(names(rows), rows, strict=True):
        found = row["properties"]
        values = {name: one["value"] for name, one in found.items()}
        beside = {key: found[name].get(key) for key, name in BESIDE.items()}
        shown.append({"who": who, **values, **beside})
        notes += [f"{who}: {words(name)}: {one['reason']}" for name, one in found.items() if one["reason"]]
    lengths = ", ".join(map(str, sorted({row["train_length"] for row in rows})))
    scope = (
        "scalability: times L; training time and evaluation memory: times those of no encoding; --explain prints the "
        "formulas"
    )
    return Table(f"{TITLE} at a training length L of {lengths}", COLUMNS, shown, [scope, *condensed(notes, len(rows))])


def names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Runs by their names; encodings by theirs, and where one is there twice by the options that differ."""
    found = []
    for row in rows:
        alike = [flat(one["options"]) for one in rows if one["encoding"] == row["encoding"] and not one["run"]]
        differing = [
            f"{key}={value}"
            for key, value in flat(row["options"]).items()
            if any(other.get(key) != value for other in alike)
        ]
        found.append(row["run"] or ", ".join([row["encoding"], *differing]))
    return found


def flat(options: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Options as text by dotted key."""
    found: dict[str, str] = {}
    for key, value in options.items():
        dotted = f"{prefix}{key}"
        found |= flat(value, f"{dotted}.") if isinstance(value, Mapping) else {dotted: cell(value)}
    return found


def condensed(notes: Sequence[str], rows: int) -> list[str]:
    """The notes, those that say the same of several encodings as one."""
    found: dict[str, list[str]] = {}
    for note in notes:
        who, _, what = note.partition(": ")
        found.setdefault(what, []).append(who)
    return [f"{', '.join(names) if len(names) < max(2, rows) else 'all'}: {what}" for what, names in found.items()]


def formulas(setting: str, explanations: Mapping[str, Mapping[str, str]]) -> str:
    """What each property is, for a terminal."""
    lines = [setting, ""]
    for name, parts in explanations.items():
        lines += [f"{words(name)}: {parts['title']}"]
        lines += [f"  {label}: {text}" for label, text in parts.items() if label != "title"]
        lines += [""]
    return "\n".join(lines).rstrip()


def markdown(rows: Sequence[Mapping[str, Any]], setting: str, explanations: Mapping[str, Mapping[str, str]]) -> str:
    """The table, then, where they are given, the formulas."""
    parts = [table(rows).markdown()] if rows else []
    if explanations:
        parts.append("\n## How it is measured\n")
    parts += [f"\n{escaped(paragraph)}\n" for paragraph in setting.split("\n\n") if paragraph]
    for name, explained in explanations.items():
        items = "".join(f"* {label}: {escaped(text)}\n" for label, text in explained.items() if label != "title")
        parts.append(f"\n### {words(name).capitalize()}\n\n{escaped(explained['title'])}\n\n{items}")
    return "".join(parts).lstrip("\n")


def words(name: str) -> str:
    return name.replace("_", " ")
