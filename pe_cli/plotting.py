"""What `pe plot` draws: the curves of a run, or encodings side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pe_cli import figures, pictures, plots
from pe_cli.encodings.base import ModelSpec
from pe_cli.errors import ConfigError, RunError, canonical, nearest
from pe_cli.evaluated import read_rows
from pe_cli.evaluation import COLUMNS
from pe_cli.kinds import HOOKS, Subject
from pe_cli.options import LONGEST_SHOWN, strategies_named
from pe_cli.runs import Run
from pe_cli.schema import shown
from pe_cli.side_by_side import Shown
from pe_cli.side_by_side import shown as side_by_side
from pe_cli.subjects import named
from pe_cli.training import TRAINING_COLUMNS, VALIDATION_COLUMNS

SUFFIXES = (".png", ".svg")
FOLDER = Path("results/plots")
LENGTH = 64
_LONGEST_NAME = 150


@dataclass(frozen=True)
class Picture:
    """What is drawn where no file is named, and how; the titles of its parts and what is said below them."""

    title: str
    default: Path
    parts: Sequence[str]
    notes: Sequence[str]
    draw: Callable[[Path], None]


@dataclass(frozen=True)
class Options:
    """What is asked of the encodings in a picture; None is what was not said."""

    length: int | None
    at_length: int | None
    strategies: Sequence[str] | None
    layer: int | None
    kinds: Sequence[str] | None
    pairs: Sequence[str]

    def stated(self) -> list[str]:
        """The options that were given."""
        given = {
            "--length": self.length,
            "--at-length": self.at_length,
            "--strategy": self.strategies,
            "--layer": self.layer,
            "--set": self.pairs or None,
        }
        return [option for option, value in given.items() if value is not None]

    def words(self) -> list[str]:
        """What becomes of an encoding, as the name of a file has it."""
        return [*(pair.removeprefix("encoding.") for pair in dict.fromkeys(self.pairs)), *(self.strategies or [])]


def picture(names: Sequence[str], asked: Options) -> Picture:
    """The picture of encodings and runs. ConfigError or RunError for what cannot be drawn, before it is drawn."""
    kinds = None if asked.kinds is None else known_kinds(asked.kinds)
    found = [one.run or one.name for one in named(names, {})]
    runs = [one for one in found if isinstance(one, Run)]
    if kinds is None and len(runs) == len(found):
        if len(runs) > 1:
            raise ConfigError("curves are drawn of one run; name a --kind to draw what several have learned")
        if stated := asked.stated():
            raise ConfigError(f"{stated[0]}: curves of a run take no such option; name a --kind to draw its encoding")
        return curves_of(runs[0])
    if asked.length is not None and asked.at_length is not None:
        raise ConfigError("--length and --at-length both say how many characters: give one of them")
    size = asked.length or LENGTH if asked.at_length is None else asked.at_length
    if size > LONGEST_SHOWN:
        option = "--length" if asked.at_length is None else "--at-length"
        raise ConfigError(f"{option} {size}: must be from 1 to {LONGEST_SHOWN}")
    chosen = side_by_side(found, asked.pairs, strategies_named(asked.strategies or ["none"]), size)
    windows = [Subject(one.label, one.window) for one in chosen]
    sections, notes = pictures.sections(windows, kinds, asked.layer)
    strategy_notes = [f"{one.label}: {note}." for one in chosen for note in one.window.notes]
    others = [pair for pair in dict.fromkeys(asked.pairs) if not pair.startswith("encoding.")]
    settings = [f"Set: {', '.join(others)}."] if others else []
    notes = [sizes(chosen, size), *settings, *strategy_notes, *notes]
    title = "; ".join(one.label for one in chosen)
    stem = file_name([*dict.fromkeys(name_of(one) for one in found), *(kinds or []), *asked.words()])
    return Picture(
        title,
        FOLDER / f"{stem}.png",
        [section.title for section in sections],
        notes,
        lambda path: figures.draw(sections, path, title, notes),
    )


def known_kinds(kinds: Sequence[str]) -> list[str]:
    """ConfigError with the nearest kind for one that does not exist."""
    for kind in kinds:
        if canonical(kind) not in HOOKS:
            raise ConfigError(f"--kind: there is no picture {shown(kind)}{nearest(kind, HOOKS)}")
    return list(dict.fromkeys(map(canonical, kinds)))


def sizes(chosen: Sequence[Shown], size: int) -> str:
    """The length, and the sizes that all encodings share."""
    specs = [one.window.spec for one in chosen]

    def of(name: str, value: Callable[[ModelSpec], int]) -> list[str]:
        found = {value(spec) for spec in specs}
        return [f"{name} {found.pop()}"] if len(found) == 1 else []

    shared = [
        *of("d_model", lambda spec: spec.d_model),
        *of("heads", lambda spec: spec.n_heads),
        *of("layers", lambda spec: spec.n_layers),
        *of("training length", lambda spec: spec.train_length),
    ]
    return f"{size} character{'s' if size > 1 else ''}; {', '.join(shared)}.".replace("; .", ".")


def name_of(one: str | Run) -> str:
    return one.path.name if isinstance(one, Run) else canonical(one)


def file_name(parts: Sequence[str]) -> str:
    """A name that every file system takes."""
    text = "-".join(parts)
    kept = "".join(character if character.isalnum() or character in "._-" else "_" for character in text)
    return kept.encode("ascii", "replace").decode().replace("?", "_")[:_LONGEST_NAME].lstrip(".") or "picture"


def curves_of(run: Run) -> Picture:
    """Loss while training, and beyond the training length where that has been evaluated."""
    training = rows_of(run, "training.csv", TRAINING_COLUMNS)
    if training is None:
        raise RunError(f"{run.path.absolute()} has no training.csv yet: there is nothing to draw")
    validation = rows_of(run, "validation.csv", VALIDATION_COLUMNS)
    extrapolation = rows_of(run, "extrapolation.csv", COLUMNS)
    parts = ["Loss while training", *(["Loss beyond the training length"] if extrapolation is not None else [])]
    texts = [] if extrapolation is None else [one for one in extrapolation["data"].unique() if one != run.text("data")]
    title = f"{run.path.name}: {run.status}{''.join(f', evaluated on {text}' for text in texts)}"

    def draw(path: Path) -> None:
        plots.plot_run(training, validation, extrapolation, path, title)

    return Picture(title, FOLDER / f"{file_name([run.path.name])}.png", parts, [], draw)


def rows_of(run: Run, name: str, columns: Sequence[str]) -> pd.DataFrame | None:
    """The rows of a file of a run, None where it is not there."""
    path = run.path / name
    return read_rows(path, columns) if path.exists() else None
