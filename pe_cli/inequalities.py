"""Inequalities between measured numbers, as a person writes them: `loss(alibi, 4096) < loss(rope, 4096) - 0.05`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pe_cli import strategies
from pe_cli.errors import ConfigError, canonical, comma_parts, nearest
from pe_cli.schema import read, shown

AT_LENGTHS = ("loss", "gain", "accuracy", "exact_match", "margin")
"""Columns of extrapolation.csv."""
OF_RUNS = ("overfitting",)
"""The validation loss less the training loss at the end, as run.json has them."""
OF_TABLES = ("neighbour_distance",)
"""Mean distance of neighbouring rows of the table, as initialised, over the training length."""
MEASURES = (*AT_LENGTHS, *OF_RUNS, *OF_TABLES)
_PART = re.compile(
    r"\s*(?P<sign>[+-])?\s*"
    r"(?:(?P<term>\w+\s*\((?:[^()]|\([^()]*\))*\))|(?P<number>[0-9.][0-9._]*(?:[eE][+-]?[0-9]+)?)(?![\w(]))\s*"
)
_RUN = re.compile(r"(?P<run>[\w.-]+?)(?:\s+on\s+(?P<data>[\w.-]+))?\s*(?:\+\s*(?P<strategy>.+))?")
_FORM = "a side has numbers and MEASURE(RUN [on DATA] [+ STRATEGY], LENGTH [, PROTOCOL]) with + or - between them"


@dataclass(frozen=True)
class Term:
    """A measured number: of a run, with a strategy, at a length, by a protocol (None: the run's first)."""

    measure: str
    run: str
    data: str | None = None
    """What the run is asked in place of what it was trained on."""
    strategy: str = "none"
    length: int | None = None
    protocol: str | None = None


@dataclass(frozen=True)
class Side:
    """The sum of measured numbers, each with its sign, and a fixed one."""

    terms: tuple[tuple[int, Term], ...]
    number: float = 0.0


@dataclass(frozen=True)
class Inequality:
    """`less`: the left side is said to be below the right one, else above it."""

    text: str
    left: Side
    right: Side
    less: bool

    @property
    def terms(self) -> list[Term]:
        return [term for side in (self.left, self.right) for _, term in side.terms]


def inequality(text: str) -> Inequality:
    """ConfigError with the text and what would be right."""
    words = " ".join(text.split())
    parts = re.split(r"[<>]", words)
    if len(parts) != 2:
        raise ConfigError(f"{shown(words)}: must be LEFT < RIGHT or LEFT > RIGHT")
    try:
        found = Inequality(words, side(parts[0].strip()), side(parts[1].strip()), "<" in words)
    except ConfigError as error:
        raise ConfigError(f"{shown(words)}: {error}") from None
    if not found.terms:
        raise ConfigError(f"{shown(words)}: has no measured number in it; {_FORM}")
    return found


def side(text: str) -> Side:
    """What stands on one side: parts, from the second on each with a sign."""
    terms: list[tuple[int, Term]] = []
    number, at = 0.0, 0
    while at < len(text) or at == 0:
        match = _PART.match(text, at)
        if match is None or (at > 0 and match["sign"] is None):
            raise ConfigError(f"{shown(text[at:])} cannot be read: {_FORM}")
        sign, at = (-1 if match["sign"] == "-" else 1), match.end()
        if match["term"] is not None:
            terms.append((sign, term(match["term"])))
            continue
        try:
            number += sign * float(read(float, match["number"]))
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if not math.isfinite(number):
        raise ConfigError(f"the numbers of {shown(text)} add up to more than a number can be")
    return Side(tuple(terms), number)


def term(text: str) -> Term:
    name, _, inside = text.removesuffix(")").partition("(")
    measure = canonical(name)
    if measure not in MEASURES:
        raise ConfigError(f"{shown(name)} is no measure{nearest(name, MEASURES)}")
    who, *places = (part.strip() for part in comma_parts(inside))
    match = _RUN.fullmatch(who)
    if match is None:
        raise ConfigError(f"{shown(who)} is no run: write RUN, RUN on DATA, or RUN + STRATEGY")
    strategy = "none" if match["strategy"] is None else strategies.label(match["strategy"])
    if measure not in AT_LENGTHS:
        if places or match["data"] or match["strategy"]:
            raise ConfigError(f"{measure} is of a run alone: write {measure}({match['run']})")
        return Term(measure, match["run"])
    if not 1 <= len(places) <= 2:
        raise ConfigError(f"{shown(text)}: write {measure}({who}, LENGTH) or {measure}({who}, LENGTH, PROTOCOL)")
    try:
        length = int(read(int, places[0]))
    except ValueError as error:
        raise ConfigError(f"{shown(text)}: the length {error}") from None
    protocol = canonical(places[1]) if len(places) == 2 else None
    return Term(measure, match["run"], match["data"], strategy, length, protocol)


def one_of(what: str, name: object, known: Mapping[str, object]) -> None:
    """ConfigError where a name is not among the known ones."""
    if str(name) not in known:
        raise ConfigError(f"there is no {what} {shown(name)}{nearest(str(name), known)}")
