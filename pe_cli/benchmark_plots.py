"""The rows of bench.csv as a picture: a line for each encoding, a dot for each length."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pe_cli.drawing import drawing, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 150
_WIDTH, _LINE = 12.6, 0.2


def plot_benchmark(rows: pd.DataFrame, path: Path, title: str, notes: Sequence[str]) -> None:
    """Speed of training, time of one window and its memory. RunError, with the file named, for whatever goes wrong."""
    with drawing(path):
        save(_figure(rows, title, notes), path)


def _figure(rows: pd.DataFrame, title: str, notes: Sequence[str]) -> Figure:
    from matplotlib.figure import Figure

    names = list(rows["encoding"].unique())
    small = [line for note in notes for line in textwrap.wrap(note, round(_WIDTH * 15.5))]
    height = 1.5 + _LINE * max(4, len(names)) + 0.155 * len(small)
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    figure.supxlabel("\n".join(small), x=0.01, ha="left", linespacing=1.35, fontsize=8, color="#444444")
    speed, seconds, memory = figure.subplots(1, 3, sharey=True)
    trained, asked = (rows[rows["work"] == work] for work in ("training", "evaluation"))
    _dots(speed, trained, trained["chars_per_second"], names)
    _dots(seconds, asked, asked["seconds"], names)
    megabytes = asked["peak_bytes"].astype(float) / 2**20
    _dots(memory, asked, megabytes.where(megabytes > 0), names)  # a page may hold a small window
    windows, length = trained["windows"].iloc[0], trained["length"].iloc[0]
    speed.set(title=f"training on {windows} windows of {length}", xlabel="characters per second")
    speed.set_yticks(range(len(names)), [textwrap.shorten(name, 30, placeholder="…") for name in names])
    speed.set_xlim(left=0)
    speed.set_ylim(len(names) - 0.5, -0.5)
    seconds.set(title="one window", xlabel="seconds, logarithmic")
    memory.set(title="peak memory of one window", xlabel="MiB, logarithmic")
    for axes in (seconds, memory):
        _logarithmic(axes)
    if len(asked):
        figure.legend(*seconds.get_legend_handles_labels(), loc="outside right center", title="characters")
    return figure


def _dots(axes: Axes, rows: pd.DataFrame, values: pd.Series, names: Sequence[str]) -> None:
    """A colour for each length, from light to dark; black where there is but one."""
    from matplotlib import colormaps

    lengths = sorted(rows["length"].unique())
    for number, length in enumerate(lengths):
        at = rows["length"] == length
        places = [names.index(name) for name in rows["encoding"][at]]
        shade = colormaps["viridis_r"](0.1 + 0.9 * number / (len(lengths) - 1)) if len(lengths) > 1 else "black"
        axes.plot(values[at], places, "o", color=shade, markersize=6, label=f"{length:,}")
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _logarithmic(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if not axes.dataLim.width > 0:  # nothing to be drawn
        return
    axes.set_xscale("log")
    low, high = axes.dataLim.intervalx
    if high < 10 * low:  # a decade at least, so that two values are labelled
        middle = math.sqrt(low * high)
        axes.set_xlim(middle / math.sqrt(10), middle * math.sqrt(10))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
