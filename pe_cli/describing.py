"""What the commands about encodings do, once their arguments are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pe_cli import inspection, options
from pe_cli.catalogue import catalogue
from pe_cli.config import ModelConfig, resolve
from pe_cli.console import Console
from pe_cli.inspection_tables import readable
from pe_cli.tables import Column


def list_(what: str | None, json: bool) -> None:
    console = Console()
    found = catalogue(what)
    if json:
        console.json(next(iter(found.values())) if what else found)
        return
    for kind, rows in found.items():
        if not rows:
            console.result(f"{kind}: none yet")
            continue
        flat = [{**row, "options": option_text(row.get("options", {}))} for row in rows]
        keys = [
            key
            for key in ("name", "family", "year", "line", "options", "reference")
            if any(flat_row.get(key) for flat_row in flat)
        ]
        console.table(flat, [Column(key, key) for key in keys], kind)
        console.result("")


def option_text(options: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(f"{name}={named(entry['default'])}" for name, entry in options.items())


def named(default: Any) -> Any:
    """A default that is an encoding, or a list of them, by name; `pe list --json` has all of it."""
    if isinstance(default, list):
        return "[" + ", ".join(str(named(entry)) for entry in default) + "]"
    return default["name"] if isinstance(default, Mapping) else default


def inspect(
    encoding: str, length: str, at_length: str | None, strategy: str, changes: Mapping[str, str], json: bool
) -> None:
    console = Console()
    shown = options.whole_number(length, "--length", least=1)
    at = options.whole_number(at_length, "--at-length", least=1) if at_length is not None else None
    experiment = resolve(None, {"encoding": encoding, **width_for(changes), **changes}).experiment
    facts = inspection.inspect_encoding(experiment, shown, at_length=at, strategy=strategy)
    if json:
        console.json(facts)
        return
    for table in readable(facts):
        console.table(table.rows, [Column(name, name) for name in table.columns], table.title)
        console.result("")


def width_for(changes: Mapping[str, str]) -> dict[str, str]:
    """A width for the heads asked for, of the default head size, where none is given."""
    heads = changes.get("model.n_heads", "")
    if not heads.isdecimal() or "model.d_model" in changes:
        return {}
    sizes = ModelConfig()
    return {"model.d_model": str(sizes.d_model // sizes.n_heads * int(heads))}
