"""How strategies are written in a config and on the command line, and how they are called in tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import SectionError, StrategyRefused, canonical, comma_parts, refused
from pe_cli.schema import problems, shown
from pe_cli.strategies.registry import Strategy, names, strategy_class
from pe_cli.yaml_source import parse_value

ALL = "all"
"""In place of a name: every strategy, by its defaults, that has a meaning for the encoding at hand."""

Entry = str | dict[str, Any]
"""A name where all options have their defaults, else a block with `name` and every option."""


def canonical_block(entry: Any) -> dict[str, Any]:
    """An entry as {"name": …, every option: …}; else SectionError with keys as the block has them.

    An entry is a name, a block `{name: yarn, beta_fast: 4}`, or what tables call it: `yarn(beta_fast=4)`.
    """
    stated = _stated(entry)
    missing = "is no name" if "name" in stated else "has no name; write 'name: none' in it"
    name = stated.pop("name", None)
    if not isinstance(name, str):
        raise refused("", f"{shown(entry)} {missing}")
    cls = strategy_class(name)
    try:
        options = cls.Options.model_validate(stated)
    except ValidationError as error:
        raise SectionError(problems(error)).of(cls.name) from None
    return {"name": cls.name, **options.model_dump(mode="json")}


def _stated(entry: Any) -> dict[str, Any]:
    if isinstance(entry, str) and entry.strip().startswith("{"):
        entry = parse_value(entry, f"strategy {entry.strip()}")
    if isinstance(entry, Mapping):
        return dict(entry)
    if not isinstance(entry, str) or not {*entry} & {*"()"}:
        return {"name": entry}
    name, _, inside = entry.strip().removesuffix(")").partition("(")
    if canonical(name) == ALL:
        raise refused("", f"{shown(entry)}: {ALL} takes no options: it has every strategy by its defaults")
    pairs = [pair.partition("=") for pair in comma_parts(inside)]
    closed = entry.rstrip().endswith(")") and inside.count("(") == inside.count(")")
    if not closed or not all(equals for _, equals, _ in pairs):
        raise refused("", f"{shown(entry)}: write {name.strip() or 'NAME'}(OPTION=VALUE, …)")
    return {"name": name, **{key.strip(): value.strip() for key, _, value in pairs}}


def build(entry: Any) -> Strategy:
    """The strategy of an entry; ConfigError where there is none."""
    block = _asked(entry)
    cls = strategy_class(block.pop("name"))
    return cls(cls.Options.model_validate(block))


def _asked(entry: Any) -> dict[str, Any]:
    try:
        return canonical_block(entry)
    except SectionError as error:
        raise error.under("strategy") from None


def label(entry: Any) -> str:
    """The name with all options that are not at their defaults: `yarn(beta_fast=4)`. It is an entry, too."""
    block = _asked(entry)
    name = block.pop("name")
    defaults = strategy_class(name).Options().model_dump(mode="json")
    pairs = [f"{key}={_written(value)}" for key, value in block.items() if value != defaults[key]]
    return f"{name}({', '.join(pairs)})" if pairs else str(name)


def _written(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_written, value))}]"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def read_entries(value: Any) -> tuple[Entry, ...]:
    """Entries in a list, in text with commas, or one alone; each once. ValueError with what would be right."""
    if isinstance(value, str):
        text = value.strip()
        inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        value = [part.strip() for part in comma_parts(inside)] if inside.strip() else []
    elif isinstance(value, Mapping) or not isinstance(value, Sequence):
        value = [value]
    found: dict[str, Entry] = {}
    try:
        for entry in value:
            if isinstance(entry, str) and canonical(entry) == ALL:
                found[ALL] = ALL
                continue
            block = canonical_block(entry)
            called = label(block)
            found[called] = called if called in names() else block
    except SectionError as error:
        raise PydanticCustomError("nested", "holds an entry that was refused", {"problems": error.problems}) from None
    if not found:
        raise ValueError(f"must name at least one; known: {', '.join([*names(), ALL])}")
    return tuple(found.values())


Entries = Annotated[tuple[Entry, ...], BeforeValidator(read_entries)]
"""The type of an option that is a list of strategies."""


def apply(
    entry: Any, encoding: PositionEncoding, train_length: int, length: int, refusals: dict[str, str] | None = None
) -> PositionEncoding:
    """The encoding for evaluation at `length`; the very same object up to the training length.

    Parts of a composition that refuse are put into `refusals`, with the reason.

    StrategyRefused, with the reason in words, where it has no meaning. ConfigError for an unknown name or option.
    """
    return build(entry)(encoding, train_length, length, refusals)


def with_meaning(
    entries: Sequence[Entry], encoding: PositionEncoding, train_length: int, length: int
) -> tuple[Entry, ...]:
    """The entries with `all` replaced by the strategies that have a meaning for the encoding, each once."""
    beyond = max(length, encoding.trained_length(train_length) + 1, train_length + 1)
    found: dict[str, Entry] = {}
    for entry in entries:
        for one in names() if entry == ALL else [entry]:
            try:
                if entry == ALL:
                    apply(one, encoding, train_length, beyond)
            except StrategyRefused:
                continue
            found.setdefault(label(one), one)
    return tuple(found.values())


def left_out(run: str, entries: Sequence[Entry], used: Sequence[str]) -> list[str]:
    """One note that names the strategies that `all` did not come to; nothing where it was not asked for."""
    missing = [name for name in names() if name not in used]
    if ALL not in entries or not missing:
        return []
    return [f"strategies without meaning for {run} are left out: {', '.join(missing)}"]
