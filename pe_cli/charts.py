"""Curves over distance or characters, as sections of a picture. They know no models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pe_cli.panels import HEAD, WIDEST, comparable, grid, label, named, pairs, wrapped
from pe_cli.plots import COLOURS, DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

ROUNDING = 1e-9
"""Smaller differences are none."""
DEPTH = 1e-6
"""A logarithmic axis ends at this share of its largest value."""
_NAME = 2.0
"""Names of curves are broken where they are wider, in inches."""


@dataclass(frozen=True)
class Line:
    """A curve over 0, 1, 2, …, NaN where it has no value, and half the height of its band."""

    label: str
    values: np.ndarray
    band: np.ndarray | None = None


@dataclass(frozen=True)
class Panel:
    """Curves on one pair of axes; the text that runs along the horizontal one."""

    title: str
    lines: Sequence[Line]
    text: str | None = None


@dataclass(frozen=True)
class Charts:
    """Panels of curves side by side.

    Between two places a curve is `straight`, or a value is `held`. On a `logarithmic` axis zeros are left out.
    """

    title: str
    x: str
    y: str
    panels: Sequence[Panel]
    between: Literal["straight", "held"] = "straight"
    scale: Literal["linear", "logarithmic"] = "linear"
    panel: tuple[float, float] = (3.3, 2.5)

    def size(self) -> tuple[float, float]:
        (width, height), (beside, tall) = self.panel, self.legend()
        rows = -(-len(self.panels) // self.columns())
        wide = min(len(self.panels), self.columns()) * (width + beside) + 0.5
        return wide, rows * (max(height, tall) + 0.3) + 0.4 + HEAD

    def columns(self) -> int:
        return max(1, int(WIDEST / (self.panel[0] + max(1.1, self.legend()[0]))))

    def legend(self) -> tuple[float, float]:
        """Width and height of the names beside each panel, in inches; a margin where every panel has one curve."""
        names = [[called(line).split("\n") for line in panel.lines] for panel in self.panels if len(panel.lines) > 1]
        if not names:
            return 0.3, 0.0
        longest = max(len(part) for panel in names for name in panel for part in name)
        return max(1.1, 0.6 + 0.07 * longest), 0.18 * max(sum(map(len, panel)) for panel in names)

    def draw(self, figure: SubFigure) -> None:
        from matplotlib.ticker import MaxNLocator

        columns = self.columns()
        rows = [self.panels[start : start + columns] for start in range(0, len(self.panels), columns)]
        values = [np.concatenate([line.values for line in panel.lines]) for panel in self.panels]
        shared = self.between == "straight" and comparable(values)
        panels = grid(figure, rows, sharey=shared)
        for place, panel in pairs(panels, rows):
            for number, line in enumerate(panel.lines):
                curve(place, line, number, self)
            shade(place, panel.lines)
            place.set_title(wrapped(panel.title, self.panel[0]), loc="left")
            if self.scale == "logarithmic":
                logarithmic(place, panel.lines)
            place.margins(x=0.02)
            place.grid(color="#e4e4e4", linewidth=0.6)
            place.set_axisbelow(True)
            place.spines[["top", "right"]].set_visible(False)
            named(place.xaxis, panel.text, self.panel[0], len(panel.lines[0].values))
            if self.between == "held":
                place.yaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
            if len(panel.lines) > 1:
                place.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), frameon=False, handlelength=2.6)
        if self.scale == "linear":
            places = [place for place, _ in pairs(panels, rows)]
            for together in [places] if shared else [[place] for place in places]:
                unmagnified(together)
        label(panels, rows, self.x, self.y + (", logarithmic" if self.scale == "logarithmic" else ""))


def unmagnified(places: Sequence[Axes]) -> None:
    """Axes that share a scale do not magnify the rounding of one value."""
    low, high = (pick([bound for place in places for bound in place.dataLim.intervaly]) for pick in (min, max))
    if high - low < ROUNDING * max(1.0, abs(high)):
        middle = low if np.isfinite(low) else 0.0
        places[0].set_ylim(middle - 1, middle + 1)


def logarithmic(place: Axes, lines: Sequence[Line]) -> None:
    """A vertical axis with powers of ten, and what lies between them where it has hardly any."""
    from matplotlib.ticker import NullFormatter

    highest = max(np.nanmax(line.values, initial=DEPTH) for line in lines)
    place.set_yscale("log", nonpositive="mask")
    place.set_ylim(bottom=max(highest * DEPTH, place.get_ylim()[0]))
    low, high = place.get_ylim()
    place.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    place.yaxis.set_minor_formatter(NullFormatter() if high > 10 * low else lambda value, _: f"{value:g}")
    place.tick_params(axis="y", which="minor", labelsize=8)


def called(line: Line) -> str:
    return wrapped(line.label, _NAME)


def curve(place: Axes, line: Line, number: int, chart: Charts) -> None:
    places = np.arange(len(line.values))
    place.plot(
        places,
        line.values,
        color=COLOURS[number % len(COLOURS)],
        label=called(line),
        linestyle=DASHES[number % len(DASHES)],
        linewidth=1.4,
        drawstyle="steps-mid" if chart.between == "held" else "default",
        marker="." if len(places) <= 32 else "",
    )


def shade(place: Axes, lines: Sequence[Line]) -> None:
    """The bands of curves; rounding is none."""
    for number, line in enumerate(lines):
        if line.band is not None and np.nanmax(line.band, initial=0.0) > ROUNDING:
            low, high = line.values - line.band, line.values + line.band
            colour = COLOURS[number % len(COLOURS)]
            alpha = 0.15 if len(lines) <= 2 else 0.07
            place.fill_between(np.arange(len(low)), low, high, color=colour, alpha=alpha, linewidth=0)
