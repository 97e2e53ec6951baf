"""The picture of positions.csv: the loss by the place in the window, where all of a window counts."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pe_cli.curves import printed
from pe_cli.drawing import drawing, save
from pe_cli.plots import COLOURS, DASHES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 64
"""Points of a curve: neighbouring places are averaged."""
_WIDTH, _HEIGHT, _LEGEND, _DPI = 5.6, 4.0, 2.6, 150


def whole(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each protocol that scores all places of its windows alike, the rows of its longest length.

    `rows` has the columns of positions.csv and train_length. Protocols that score the ends of windows, of all but the
    first, show by length what there is to be seen.
    """
    chosen = rows[rows["length"] == rows.groupby("protocol")["length"].transform("max")]
    of_protocol = chosen.groupby("protocol")
    places, counts = of_protocol["position"].transform("nunique"), of_protocol["scored_chars"]
    alike = counts.transform("max") - counts.transform("min") <= 1  # the last window may be shorter
    return chosen[(places == chosen["length"]) & alike & (chosen["length"] > chosen["train_length"])]


def plot_positions(rows: pd.DataFrame, path: Path, title: str) -> None:
    """A panel for each protocol of `whole` rows, a curve for each strategy.

    RunError, with the file named, for whatever goes wrong.
    """
    with drawing(path):
        save(_figure(rows, title), path)


def _figure(rows: pd.DataFrame, title: str) -> Figure:
    from matplotlib.figure import Figure

    protocols, strategies = list(rows["protocol"].unique()), list(rows["strategy"].unique())
    width = _WIDTH * len(protocols) + _LEGEND
    figure = Figure(figsize=(width, max(_HEIGHT, 0.2 * len(strategies) + 0.8)), dpi=_DPI, layout="constrained")
    panels = figure.subplots(1, len(protocols), squeeze=False, sharey=True)[0]
    handles = {}
    for axes, protocol in zip(panels, protocols, strict=True):
        here = rows[rows["protocol"] == protocol]
        for strategy, part in here.groupby("strategy", sort=False):
            number = strategies.index(strategy)
            colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
            points = binned(part)
            [handles[strategy]] = axes.plot(points.index, points, color=colour, linestyle=dash, linewidth=1.4)
        axes.axvline(here["train_length"].iloc[0], color="#666666", linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
        axes.set_title(f"{printed(protocol)}, windows of {here['length'].iloc[0]} characters", loc="left")
        places = here["position"].nunique()
        means = f"\neach point: the mean of up to {math.ceil(places / BINS)} places" if places > BINS else ""
        axes.set_xlabel(f"place in the window (the line: the training length){means}")
        axes.grid(color="#e4e4e4", linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("loss (nats per character)")
    figure.suptitle("\n".join(textwrap.wrap(printed(title), round(width * 9))), x=0.01, ha="left")
    names = ["\n".join(textwrap.wrap(printed(str(name)), 32)) for name in handles]
    figure.legend(list(handles.values()), names, loc="outside right upper")
    return figure


def binned(rows: pd.DataFrame) -> pd.Series:
    """Mean loss per character of at most BINS runs of neighbouring places, by the middle of each."""
    ordered = rows.sort_values("position")
    run = np.arange(len(ordered)) * min(BINS, len(ordered)) // len(ordered)
    sums = (ordered["loss"] * ordered["scored_chars"]).groupby(run).sum()
    counts = ordered["scored_chars"].groupby(run).sum()
    return (sums / counts).set_axis(ordered["position"].groupby(run).mean())
