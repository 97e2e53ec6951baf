"""Heat maps and masks of plain arrays, as sections of a picture. They know no models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pe_cli.panels import HEAD, grid, label, named, pairs, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import SubFigure

FUTURE = "#c9c9c9"
"""Neutral in every map: there is nothing here."""
SEEN, HIDDEN = "#0b4f8a", "#f6d7a2"
CRISP = 256
"""A map of more rows or columns than these is smoothed where it has more of them than pixels."""


@dataclass(frozen=True)
class Heat:
    """One panel: a matrix, NaN where there is nothing; the text that runs along its rows, and along its columns."""

    title: str
    values: np.ndarray
    rows: str | None = None
    columns: str | None = None


@dataclass(frozen=True)
class Maps:
    """Heat maps in rows. Rows of equal `scales` share their colours and the bar that explains them."""

    title: str
    x: str
    y: str
    unit: str
    rows: Sequence[Sequence[Heat]]
    scales: Sequence[int]
    panel: tuple[float, float] = (2.3, 2.3)

    def size(self) -> tuple[float, float]:
        width, height = self.panel
        return max(map(len, self.rows)) * (width + 0.25) + 1.1, len(self.rows) * (height + 0.3) + 0.4 + HEAD

    def draw(self, figure: SubFigure) -> None:
        from matplotlib.colors import Normalize

        panels = grid(figure, self.rows)
        for scale in dict.fromkeys(self.scales):
            chosen = [row for row, own in enumerate(self.scales) if own == scale]
            low, high, colours = palette(np.concatenate([heat.values.ravel() for r in chosen for heat in self.rows[r]]))
            axes = [panels[row][column] for row in chosen for column in range(len(self.rows[row]))]
            for place, heat in zip(axes, (heat for row in chosen for heat in self.rows[row]), strict=True):
                image = show(place, heat, cmap=colours, norm=Normalize(low, high), panel=self.panel)
            bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, aspect=25)
            bar.set_label(self.unit, fontsize=9)
            bar.outline.set_linewidth(0.5)
            bar.ax.tick_params(labelsize=8)
        label(panels, self.rows, self.x, self.y)


@dataclass(frozen=True)
class Masks:
    """Masks in rows: 1 where a key may be seen, 0 where it is hidden, NaN in the future."""

    title: str
    x: str
    y: str
    rows: Sequence[Sequence[Heat]]
    panel: tuple[float, float] = (2.3, 2.3)

    def size(self) -> tuple[float, float]:
        width, height = self.panel
        return max(map(len, self.rows)) * (width + 0.3) + 1.4, len(self.rows) * (height + 0.3) + 0.4 + HEAD

    def draw(self, figure: SubFigure) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        panels = grid(figure, self.rows)
        for place, heat in pairs(panels, self.rows):
            known = np.select([np.isnan(heat.values), heat.values > 0], [2, 0], 1)
            colours = np.array([to_rgb(name) for name in (SEEN, HIDDEN, FUTURE)])
            show(place, Heat(heat.title, colours[known], heat.rows, heat.columns), panel=self.panel)
        label(panels, self.rows, self.x, self.y)
        keys = [Patch(color=SEEN), Patch(color=HIDDEN), Patch(color=FUTURE)]
        widest = max(range(len(self.rows)), key=lambda row: len(self.rows[row]))
        panels[widest][len(self.rows[widest]) - 1].legend(
            keys, ["seen", "hidden", "future"], loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False
        )


def palette(values: np.ndarray) -> tuple[float, float, Colormap]:
    """Least and greatest value and the colours between: around zero where both signs occur."""
    from matplotlib import colormaps

    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if low < 0 < high:
        high = max(-low, high)
        low, colours = -high, colormaps["RdBu_r"]
    else:
        colours = colormaps["viridis"]
    if low == high:
        low, high = low - 1, high + 1
        colours = colormaps["RdBu_r"]
    return low, high, colours


def show(
    place: Axes, heat: Heat, *, panel: tuple[float, float], cmap: Colormap | None = None, norm: Normalize | None = None
) -> Any:
    height, width = heat.values.shape[:2]
    place.set_facecolor(FUTURE)
    crisp = max(height, width) <= CRISP
    image = place.imshow(
        heat.values,
        cmap=cmap,
        norm=norm,
        aspect="auto",
        interpolation="nearest" if crisp else "antialiased",
        interpolation_stage="rgba",
    )
    place.set_title(wrapped(heat.title, panel[0]), loc="left")
    for spine in place.spines.values():
        spine.set_linewidth(0.5)
    named(place.xaxis, heat.columns, panel[0], width)
    named(place.yaxis, heat.rows, panel[1], height)
    return image
