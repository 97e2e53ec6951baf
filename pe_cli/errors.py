"""Expected errors: each is one short message for the person at the keyboard, and an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PeError(Exception):
    """An expected error. The message says what, where, the value and what would be right."""

    exit_code = 2


class ConfigError(PeError):
    """A config, an option or a name that cannot be used."""


class CorpusError(PeError):
    """A text that cannot be read, fetched or cut into windows."""


class RunError(PeError):
    """A run directory that is missing, damaged, foreign or in the way."""


class RunFailed(PeError):
    """A run that started and did not end well."""

    exit_code = 1


class PositionRangeError(PeError):
    """Ids that an encoding has no numbers for, such as those beyond the rows of a learned table."""


class StrategyRefused(PeError):
    """A strategy that has no meaning for an encoding."""


class Interrupted(PeError):
    """Stopped by SIGINT (exit code 130) or SIGTERM (143)."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'rope'?`, or the known names where none is near."""
    known = sorted(known)
    close = difflib.get_close_matches(canonical(name), known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(known)}"


def canonical(name: str) -> str:
    """Names are accepted with `-` or `_` and in any letter case."""
    return name.strip().lower().replace("-", "_")
