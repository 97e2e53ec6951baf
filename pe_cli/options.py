"""The options that several commands share, and how their text becomes values."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from pe_cli.errors import ConfigError

Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key, e.g. training.steps=500.")
]
Encoding = Annotated[str | None, typer.Option("--encoding", metavar="NAME", help="The position encoding.")]
Data = Annotated[str | None, typer.Option("--data", metavar="NAME_OR_PATH", help="A built-in corpus or a text file.")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="The seed of weights, data and dropout.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="In place of `results`: runs go to DIR/runs.")]
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda|mps", help="Where to compute.")]
Threads = Annotated[int | None, typer.Option("--threads", metavar="N", min=1, help="Threads of one run.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")]
Force = Annotated[bool, typer.Option("--force", help="Train again what is there already.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Strict JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Lengths = Annotated[list[str] | None, typer.Option("--lengths", metavar="N,N,…", help="Evaluate at these lengths.")]
MaxLen = Annotated[
    str | None,
    typer.Option("--max-len", metavar="N", help="Double the training length up to N.", show_default="4096"),
]
Strategy = Annotated[
    list[str] | None,
    typer.Option("--strategy", metavar="NAME,…", help="What is done beyond the training length."),
]
RunArgument = Annotated[
    Path | None, typer.Argument(metavar="[RUN]", help="A run directory or its name; default: the newest.")
]
ConfigArgument = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG]", help="A YAML file; default: the default experiment.")
]


def settings(pairs: Iterable[str] | None) -> dict[str, str]:
    """KEY=VALUE texts as a mapping; the last of equal keys wins."""
    found = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {pair}: write --set KEY=VALUE, e.g. --set training.steps=500")
        found[key.strip()] = value
    return found


def overrides(
    pairs: Iterable[str] | None, encoding: str | None, data: str | None, seed: int | None
) -> dict[str, str | int | None]:
    """What the command line says of an experiment, by dotted key."""
    return {"encoding": encoding, "data": data, "seed": seed, **settings(pairs)}


def several(values: Iterable[str] | None) -> list[str] | None:
    """An option that may be repeated, with commas, or both; None where it is not given."""
    return [part for value in values for part in value.split(",")] if values else None


def whole_number(text: str, option: str, least: int) -> int:
    try:
        number = int(text.replace("_", "") if text.replace("_", "").isascii() else text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{option} {text}: must be a whole number from {least}")
    return number


def evaluation_overrides(
    max_len: str | None, lengths: list[str] | None, strategy: list[str] | None, train_length: int
) -> dict[str, str]:
    """--max-len, --lengths and --strategy as keys of the configuration."""
    found: dict[str, str] = {}
    if max_len is not None and lengths:
        raise ConfigError("--max-len and --lengths both say how long: give one of them")
    if lengths:
        found["evaluation.lengths"] = ",".join(lengths)
    if max_len is not None:
        longest = whole_number(max_len, "--max-len", least=2)
        if longest < train_length:
            raise ConfigError(f"--max-len {max_len}: is below the training length {train_length}; use --lengths")
        doubled = [train_length]
        while doubled[-1] * 2 <= longest:
            doubled.append(doubled[-1] * 2)
        found["evaluation.lengths"] = ",".join(map(str, sorted({*doubled, longest})))
    if strategy:
        found["evaluation.strategies"] = ",".join(strategy)
    return found


def seed_list(text: str | None, first: int) -> list[int] | None:
    """`3`: three seeds from the config's on; `1,2,3` (or `7,`): these."""
    if text is None:
        return None
    if "," not in text:
        return [first + number for number in range(whole_number(text, "--seeds", least=1))]
    seeds = [whole_number(part, "--seeds", least=0) for part in text.rstrip(",").split(",")]
    return sorted(set(seeds))
