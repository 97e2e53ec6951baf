"""Expected errors: each is one short message for the person at the keyboard, and an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

MOST_LINES = 15
_LONGEST_LINE = 5000  # a path has at most 4096 bytes
_SHOWN_PROBLEMS = 6


class PeError(Exception):
    """An expected error. The message says what, where, the value and what would be right."""

    exit_code = 2


class ConfigError(PeError):
    """A config, an option or a name that cannot be used."""


class CorpusError(PeError):
    """A text that cannot be read, fetched or cut into windows."""


class RunError(PeError):
    """A run directory that is missing, damaged, foreign or in the way."""


class Busy(RunError):
    """Another process is at work there now."""


class RunFailed(PeError):
    """A run that started and did not end well."""

    exit_code = 1


class PositionRangeError(PeError):
    """Ids that an encoding has no numbers for, such as those beyond the rows of a learned table."""


class StrategyRefused(PeError):
    """A strategy that has no meaning for an encoding."""


class Interrupted(BaseException):
    """Stopped by SIGINT (exit code 130) or SIGTERM (143). No Exception: what goes on after one ends with this."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number


class Problem(NamedTuple):
    """What is wrong with one key (dotted, inside its block): a phrase that says what would be right."""

    key: str
    text: str
    known: tuple[str, ...] | None = None
    """For a key that is not known: those that are."""
    owner: str = ""
    """What the key is an option of."""

    def line(self) -> str:
        return (f"{self.key}: " if self.key else "") + self.text + (f" (of {self.owner})" if self.owner else "")


class SectionError(ConfigError):
    """A block that was refused. A caller that knows files and lines rewrites `problems` with `message`."""

    def __init__(self, problems: Sequence[Problem]):
        self.problems = tuple(problems)
        super().__init__(message(self.problems, lambda key: ""))

    def under(self, key: str) -> SectionError:
        """The same, as the block around it knows the keys."""
        return SectionError([one._replace(key=f"{key}.{one.key}" if one.key else key) for one in self.problems])

    def of(self, owner: str) -> SectionError:
        """The same, each problem with whose option it is; one with a key that is not known says so itself."""
        return SectionError([one if one.owner or one.known else one._replace(owner=owner) for one in self.problems])


def refused(key: str, text: str) -> SectionError:
    """What an encoding, a sampler or a strategy says of one of its options, or ("") of all of them together."""
    return SectionError([Problem(key, text)])


def short(text: str) -> str:
    """An error as it is shown: at most MOST_LINES, however many lines a path or a key in it has."""
    lines = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in text.split("\n")]
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[: MOST_LINES - 2], f"… ({more + 1} more lines)", lines[-1]] if more > 0 else lines)


def message(problems: Sequence[Problem], place: Callable[[str], str]) -> str:
    """One line a problem, `place(key)` in front of each, at most a handful of lines."""
    lines = [place(one.key) + one.line() for one in problems]
    more = len(lines) - _SHOWN_PROBLEMS
    if more > 0:
        lines = [*lines[:_SHOWN_PROBLEMS], f"and {more} more"]
    return "\n".join(lines)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'rope'?`, or the known names where none is near; that there are none, where that is so."""
    known = sorted(known)
    if not known:
        return "; there are none"
    return meant(closest(name, known)) or f"; known: {', '.join(known)}"


def closest(name: str, known: Iterable[str]) -> list[str]:
    """The known name, quoted, that is most like it; none where none is near."""
    return [f"'{one}'" for one in difflib.get_close_matches(canonical(name), known, n=1, cutoff=0.6)]


def meant(candidates: Sequence[str]) -> str:
    """`; did you mean 'rope'?`, and nothing without candidates."""
    return f"; did you mean {' or '.join(candidates)}?" if candidates else ""


def canonical(name: str) -> str:
    """Names are accepted with `-` or `_` and in any letter case."""
    return name.strip().lower().replace("-", "_")


def called(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant: the very one, else the only one that is the same but for case and dashes."""
    alike = [one for one in known if canonical(one) == canonical(name)]
    return name if name in alike else alike[0] if len(alike) == 1 else None


def comma_parts(text: str) -> list[str]:
    """What stands between commas, but for commas in brackets: `a,b(c=[1,2])` has two parts."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
