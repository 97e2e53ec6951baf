"""Which characters are scored, and with how much context: the protocols of evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INSTANCES = "instances"
"""The one protocol of tasks: they have no text to cut into windows."""


@dataclass(frozen=True)
class Targets:
    """The scored pieces of a text: windows that end at `ends` (n,), of which the last `scored` (n,) count.

    Indices are into the whole text. A window of length T ending at e is fed the characters e−T−1 … e−2 and
    predicts e−T … e−1: T positions, T predictions.
    """

    ends: np.ndarray
    lengths: np.ndarray
    scored: np.ndarray
    piece: int | None = None
    """Characters that intervals count as one observation; None: those that a window scores."""

    @property
    def scored_chars(self) -> int:
        return int(self.scored.sum())

    @property
    def pieces(self) -> np.ndarray:
        """How many characters each observation has, in the order of the scored characters."""
        if self.piece is None:
            return self.scored
        whole, rest = divmod(self.scored_chars, self.piece)
        return np.array([self.piece] * whole + [rest] * (rest > 0))


@dataclass(frozen=True)
class Text:
    """A text of `n_chars` characters whose held-out part begins at `held_start`."""

    n_chars: int
    held_start: int

    @property
    def held_out(self) -> int:
        return self.n_chars - self.held_start


class TooShort(Exception):
    """The held-out text cannot hold this length. The message has the numbers needed and present."""


def same_targets(text: Text, length: int, windows: int, scored: int) -> Targets:
    """Blocks of `scored` characters spread evenly over the second half of the held-out text, ends included.

    The same blocks serve every length, so that lengths differ in left context alone. Fewer blocks are used where
    that half cannot hold `windows` of them without overlap.
    """
    if length < scored:
        raise TooShort(
            f"a window of {length} characters cannot hold {scored} scored ones; set evaluation.scored to {length}"
        )
    first = text.held_start + text.held_out // 2
    half = text.n_chars - first
    count = min(windows, half // scored)
    if count == 0:
        raise TooShort(
            f"the second half of the held-out text has {half} characters; one block of scored characters needs {scored}"
        )
    context = first + scored - text.held_start
    if length > context:
        raise TooShort(
            f"a window of {length} characters needs as many held-out characters up to the end of the first "
            f"scored block; there are {context}"
        )
    starts = first + np.arange(count) * (half - scored) // max(1, count - 1)
    return Targets(starts + scored, np.full(count, length), np.full(count, scored))


def non_overlapping(text: Text, length: int) -> Targets:
    """The held-out text cut into windows of the length; every character counts, the shorter rest too."""
    if length > text.held_out:
        raise TooShort(f"a window of {length} characters is longer than the held-out text of {text.held_out}")
    starts = np.arange(text.held_start, text.n_chars, length)
    ends = np.minimum(starts + length, text.n_chars)
    return Targets(ends, ends - starts, ends - starts)


def sliding(text: Text, length: int, stride: int, piece: int) -> Targets:
    """Windows of the length that advance by `stride` over the held-out text, so that each character counts once.

    The first window scores all of its characters, each later one those after the end of the window before it; the
    last step may be shorter. A stride above the length would leave characters out, so the length is the largest
    step. Neighbouring windows share nearly all of their context: intervals take pieces of the text for
    observations, the same ones for every length and stride.
    """
    if length > text.held_out:
        raise TooShort(f"a window of {length} characters is longer than the held-out text of {text.held_out}")
    step = min(stride, length)
    first = text.held_start + length
    ends = np.minimum(np.arange(first, text.n_chars + step, step), text.n_chars)
    return Targets(ends, np.full(len(ends), length), np.diff(ends, prepend=text.held_start), piece)


def sampled(text: Text, length: int, windows: int) -> Targets:
    """At most `windows` whole windows spread evenly over the held-out text: the validation pass of training."""
    length = min(length, text.held_out)
    count = min(windows, text.held_out // length)
    starts = text.held_start + np.arange(count) * (text.held_out - length) // max(1, count - 1)
    return Targets(starts + length, np.full(count, length), np.full(count, length))
