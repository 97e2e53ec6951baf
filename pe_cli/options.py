"""The options that several commands share, and how their text becomes values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pe_cli.errors import ConfigError, comma_parts

LARGEST = 2**63 - 1
MOST_JOBS = 1024
MOST_SEEDS = 1000
LONGEST_SHOWN = 2**16
"""The longest window of an encoding that is looked at, without a model."""


def whole_number(text: str, option: str, least: int, most: int = LARGEST) -> int:
    """A whole number, written as in a config. ConfigError with the option and the value."""
    from pe_cli.schema import read, shown  # here: `--help` needs no schema

    try:
        number = int(read(int, text))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        bounds = f"from {least}" + (f" to {most}" if most < LARGEST else "")
        raise ConfigError(f"{option}: must be a whole number {bounds}, not {shown(text)}")
    return number


def whole(option: str, least: int, most: int = LARGEST) -> Callable[[str], int]:
    """What reads the text of an option."""
    return lambda text: whole_number(str(text), option, least, most)


def real(option: str) -> Callable[[str], float]:
    """What reads the text of an option."""

    def number(text: str) -> float:
        from pe_cli.schema import read

        try:
            return float(read(float, str(text)))
        except ValueError as error:
            raise ConfigError(f"{option}: {error}") from None

    return number


def path(option: str) -> Callable[[str], Path]:
    """What reads the text of an option or argument: the empty text would be the working directory."""

    def named(text: str) -> Path:
        if not str(text).strip():
            raise ConfigError(f"{option}: is empty; name a file or a directory")
        return Path(text)

    return named


def _setting(example: str) -> Any:
    said = f"Set a key, e.g. {example}; the last value of a key counts."
    return typer.Option("--set", metavar="KEY=VALUE", help=said)


Set = Annotated[list[str] | None, _setting("training.steps=500")]
SetEncoding = Annotated[list[str] | None, _setting("encoding.base=1000")]
SetEvaluation = Annotated[list[str] | None, _setting("evaluation.stride=32")]
Encoding = Annotated[str | None, typer.Option("--encoding", metavar="NAME", help="The position encoding.")]
Data = Annotated[
    str | None, typer.Option("--data", metavar="NAME_OR_PATH", help="A built-in corpus, a text file, or task:NAME.")
]
Seed = Annotated[str | None, typer.Option("--seed", metavar="N", help="The seed of weights, data and dropout.")]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", parser=path("--out"), help="In place of `results`: runs go to DIR/runs."),
]
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda|mps", help="Where to compute.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", parser=whole("--threads", 1), help="Threads of one run."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", parser=whole("--jobs", 1, MOST_JOBS), help="Runs at the same time."),
]
Seeds = Annotated[str | None, typer.Option("--seeds", metavar="N or 1,2,3", help="How many seeds, or which.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")]
Force = Annotated[bool, typer.Option("--force", help="Train again what is there already.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Strict JSON on standard output.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Lengths = Annotated[list[str] | None, typer.Option("--lengths", metavar="N,N,…", help="Evaluate at these lengths.")]
MaxLen = Annotated[
    str | None,
    typer.Option("--max-len", metavar="N", help="Double the training length up to N.", show_default="4096"),
]
Strategy = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy", metavar="NAME,…", help="What is done beyond the training length; `all`: what has a meaning."
    ),
]
Protocol = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol", metavar="NAME,…", help="What is scored: same_targets, non_overlapping or sliding, or several."
    ),
]


def length_shown(usual: str) -> Any:
    """The option --length of what shows an encoding; `usual` is its value where it is not given."""
    return typer.Option(
        "--length",
        metavar="N",
        parser=whole("--length", 1, LONGEST_SHOWN),
        help="Characters to show, without --at-length.",
        show_default=usual,
    )


AtLength = Annotated[
    int | None,
    typer.Option(
        "--at-length",
        metavar="N",
        parser=whole("--at-length", 1, LONGEST_SHOWN),
        help="What a strategy makes of it at this length.",
    ),
]
RunArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RUN]", parser=path("RUN"), help="A run: its directory or name; default: the last of `pe train`."
    ),
]
ConfigArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[CONFIG]", parser=path("CONFIG"), help="A YAML file; default: the default experiment."),
]


def settings(pairs: Iterable[str] | None, option: str = "--set") -> dict[str, str]:
    """KEY=VALUE texts as a mapping; of several values of a key the last counts, as of any option that takes one."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{option} {pair}: write {option} KEY=VALUE, e.g. {option} training.steps=500")
        found[key.strip()] = value
    return found


def variations(texts: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """All of a command, each once: by the last parts of their keys, but for those that would then be called alike."""
    short = {text: variation(text) for text in dict.fromkeys(texts)}
    called = [name for name, _ in short.values()]
    return [variation(text, called.count(name) > 1) for text, (name, _) in short.items()]


def variation(text: str, full: bool = False) -> tuple[str, dict[str, str]]:
    """`training.learning_rate=0.005,training.muon_learning_rate=0.01`: how it is called in tables, and its values.

    `full`: it is called by its whole keys, and not by their last parts.
    """
    from pe_cli.stated import Typed, printable

    pairs = re.split(r",(?=[\w.\-]+=)", text)
    changes = settings(pairs, "--vary")
    if len(changes) < len(pairs):
        raise ConfigError(f"--vary {text}: gives a key twice; each further recipe is a --vary of its own")
    for key in changes:
        if key in ("name", "seed") or key.partition(".")[0] == "evaluation":
            raise ConfigError(f"--vary {text}: {key}: takes what changes the training: seeds have --seeds")
    leaves = [key.rpartition(".")[-1] for key in changes]
    names = leaves if len(set(leaves)) == len(leaves) and not full else list(changes)
    return ", ".join(f"{name}={value}" for name, value in zip(names, changes.values(), strict=True)), {
        key: Typed(value, f"--vary {key}={printable(value)}") for key, value in changes.items()
    }


def overrides(
    pairs: Iterable[str] | None, encoding: str | None, data: str | None, seed: str | None
) -> dict[str, str | int | None]:
    """What the command line says of an experiment, by dotted key."""
    from pe_cli.stated import Typed, printable  # here: `--help` needs no schema

    own = {"encoding": encoding, "data": data, "seed": seed}
    found: dict[str, str | int | None] = {
        key: Typed(value, f"--set {key}={printable(value)}") for key, value in settings(pairs).items()
    }
    for key, value in own.items():
        if value is not None and found.get(key, value) != value:
            raise ConfigError(f"--set {key}={found[key]}: --{key} {value} says otherwise; keep one of them")
    return own | found


def together(said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
    """Settings of `--set`, and what other options ask. ConfigError where the two say different things."""
    from pe_cli.stated import Typed

    for key, value in asked.items():
        if said.get(key, value) != value:
            asks = value.label if isinstance(value, Typed) else "an option"
            raise ConfigError(f"--set {key}={said[key]}: {asks} asks for {value}; keep one of them")
    return {**said, **asked}


def several(values: Iterable[str] | None) -> list[str] | None:
    """An option that may be repeated, with commas outside of brackets, or both; None where it is not given."""
    return [part for value in values for part in comma_parts(value)] if values else None


def evaluation_overrides(
    lengths: list[str] | None, strategy: list[str] | None, protocol: list[str] | None
) -> dict[str, str]:
    """--lengths, --strategy and --protocol as keys of the configuration."""
    from pe_cli.stated import Typed, printable

    asked = {
        "evaluation.lengths": ("--lengths", lengths),
        "evaluation.strategies": ("--strategy", strategy),
        "evaluation.protocols": ("--protocol", protocol),
    }
    texts = {key: (option, ",".join(values)) for key, (option, values) in asked.items() if values}
    return {key: Typed(text, f"{option} {printable(text)}") for key, (option, text) in texts.items()}


def strategies_named(texts: Iterable[str]) -> list[str]:
    """Strategies as tables call them, each once. ConfigError that names the option for what is none."""
    from pe_cli import strategies
    from pe_cli.errors import SectionError

    found: dict[str, None] = {}
    for text in texts:
        try:
            strategies.canonical_block(text)
        except SectionError as error:
            lines = [f"--strategy {text}: {problem.line()}" for problem in error.problems]
            raise ConfigError("\n".join(lines)) from None
        found[strategies.label(text)] = None
    return list(found)


def longest_length(max_len: str | None, lengths: list[str] | None) -> int | None:
    """--max-len as a number, None where it is not given."""
    if max_len is None:
        return None
    if lengths:
        raise ConfigError("--max-len and --lengths both say how long: give one of them")
    from pe_cli.experiment import LONGEST

    return whole_number(max_len, "--max-len", least=2, most=LONGEST)


def lengths_up_to(longest: int | None, train_length: int) -> dict[str, str]:
    """The training length doubled up to `longest`, and that itself, as a key of the configuration."""
    if longest is None:
        return {}
    if longest < train_length:
        raise ConfigError(f"--max-len {longest}: is below the training length {train_length}; use --lengths")
    from pe_cli.experiment import doubled_lengths
    from pe_cli.stated import Typed

    lengths = ",".join(map(str, sorted({*doubled_lengths(train_length, longest), longest} - {1})))  # none has 1
    return {"evaluation.lengths": Typed(lengths, f"--max-len {longest}")}


def seed_list(text: str | None, first: int) -> list[int] | None:
    """`3`: three seeds from the config's on; `1,2,3` (or `7,`): these."""
    if text is None:
        return None
    if "," not in text:
        count = whole_number(text, "--seeds", least=1, most=MOST_SEEDS)
        if first + count - 1 > LARGEST:
            raise ConfigError(f"--seeds {text}: seed {first} and the next ones go beyond the largest, {LARGEST}")
        return [first + number for number in range(count)]
    seeds = [whole_number(part, "--seeds", least=0) for part in text.rstrip(",").split(",")]
    return sorted(set(seeds))
