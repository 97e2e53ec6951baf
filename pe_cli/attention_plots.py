"""The picture of attention.csv: where queries look, by length, layer and strategy."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pe_cli.curves import printed
from pe_cli.drawing import drawing, save
from pe_cli.errors import PeError
from pe_cli.plots import COLOURS, length_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {
    "entropy": "entropy (nats)",
    "relative_entropy": "entropy / ln(keys)",
    "distance": "mean distance (characters)",
    "first": "weight on the first characters",
}
_DPI = 150


def plot_attention(rows: pd.DataFrame, train_length: int, path: Path, title: str, notes: Sequence[str]) -> None:
    """A row of panels for each strategy, a curve for each layer: means over heads.

    `rows` has the columns of attention.csv. RunError, with the file named, for whatever goes wrong.
    """
    with drawing(path):
        save(_figure(rows, train_length, title, notes), path)


def _figure(rows: pd.DataFrame, train_length: int, title: str, notes: Sequence[str]) -> Figure:
    from matplotlib.figure import Figure

    if rows.empty:
        raise PeError("there are no rows")
    strategies = list(rows["strategy"].unique())
    width = 3.1 * len(PANELS)
    small = [line for note in notes for line in textwrap.wrap(printed(note), round(width * 15))]
    figure = Figure(figsize=(width, 2.5 * len(strategies) + 0.8 + 0.15 * len(small)), dpi=_DPI, layout="constrained")
    panels = figure.subplots(len(strategies), len(PANELS), squeeze=False, sharex=True, sharey="col")
    for line, strategy in zip(panels, strategies, strict=True):
        own = rows[rows["strategy"] == strategy].assign(train_length=train_length)
        for axes, key in zip(line, PANELS, strict=True):
            means = own.astype({key: float}).groupby(["layer", "length"])[key].mean()
            for layer in own["layer"].unique():
                of_layer = means.loc[layer]
                colour = COLOURS[int(layer) % len(COLOURS)]
                axes.plot(of_layer.index, of_layer, color=colour, linewidth=1.4, marker="o", markersize=4)
                axes.lines[-1].set_label(f"layer {layer}")
            length_axis(axes, own)
            axes.tick_params(labelsize=8)
        line[0].set_ylabel(strategy)
    for axes, words in zip(panels[0], PANELS.values(), strict=True):
        axes.set_title(words, loc="left", fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("length of the window (characters)", fontsize=9)
    panels[0][0].legend(fontsize=8, frameon=False)
    figure.suptitle("\n".join(textwrap.wrap(printed(title), round(width * 9))), x=0.01, ha="left")
    figure.supxlabel("\n".join(small), x=0.01, ha="left", linespacing=1.35, fontsize=8, color="#444444")
    return figure
