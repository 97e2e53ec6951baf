"""What all panels of a picture have: their places, the names of their axes, and words that can be drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pe_cli.curves import printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

WIDEST = 11.4
"""Panels stand side by side up to this width, in inches."""
HEAD = 0.34
"""The height of the title of a section, in inches."""
_RATIO = 8
_LETTER = 0.125
"""Characters are named along an axis where each has this much room, in inches."""
_SHOWN = {"\n": "↵", " ": "␣", "\t": "⇥"}


def grid(figure: SubFigure, rows: Sequence[Sequence[Any]], sharey: bool = False) -> list[list[Axes]]:
    """Axes for rows that may differ in length."""
    found = figure.subplots(len(rows), max(map(len, rows)), squeeze=False, sharey=sharey)
    for axes, row in zip(found, rows, strict=True):
        for place in axes[len(row) :]:
            place.set_axis_off()
    return [list(axes) for axes in found]


def pairs(panels: Sequence[Sequence[Axes]], rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Axes, Any]]:
    for axes, row in zip(panels, rows, strict=True):
        yield from zip(axes, row, strict=False)


def label(panels: Sequence[Sequence[Axes]], rows: Sequence[Sequence[Any]], x: str, y: str) -> None:
    """Axes are named on the left, and at the bottom of each column."""
    for number, (axes, row) in enumerate(zip(panels, rows, strict=True)):
        axes[0].set_ylabel(y, fontsize=9)
        for column, place in enumerate(axes[: len(row)]):
            place.tick_params(labelsize=8, length=2.5)
            if all(len(later) <= column for later in rows[number + 1 :]):
                place.set_xlabel(x, fontsize=9)


def named(axis: Any, text: str | None, inches: float, length: int) -> None:
    """The characters along an axis, where there is room for them, else numbers."""
    from matplotlib.ticker import MaxNLocator

    if text is None or inches < _LETTER * length:
        axis.set_major_locator(
            MaxNLocator(max(2, int(inches / 0.45)), integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])
        )
    else:
        axis.set_ticks(range(length), [_SHOWN.get(character, legible(character)) for character in text])


def comparable(groups: Sequence[np.ndarray]) -> bool:
    """Whether values are of one size, so that they can share an axis or a scale of colours."""
    largest = [np.nanmax(np.abs(values), initial=0.0) for values in groups]
    return bool(max(largest) <= _RATIO * min(largest))


def wrapped(text: str, inches: float) -> str:
    return "\n".join(textwrap.wrap(legible(text), max(12, round(inches * 13.5))))


def legible(text: str) -> str:
    """As given, with an escape for what no font draws and no SVG may hold."""
    return "".join(part if part.isprintable() else repr(part)[1:-1] for part in printed(text))
