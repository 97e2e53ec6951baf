"""Pictures of results: loss against length. They read frames and know no models."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pe_cli import curves
from pe_cli.curves import Curve, printed
from pe_cli.drawing import drawing, save
from pe_cli.errors import PeError
from pe_cli.protocols import INSTANCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00",
    "#882255", "#117733", "#8c6bb1", "#999933", "#7f7f7f", "#332288", "#b35806",
)  # fmt: skip
MARKERS = "os^Dv<>PpdX"
"""Their number and that of the colours have no common divisor: pairs of both repeat late."""
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)))
SPREAD = 2.0
"""Where the largest loss is above this many times the smallest, the axis is logarithmic, and ..."""
CLOSE_UP = 1.5
"""... a second panel shows the losses up to this many times the smallest, on a linear one."""
ANSWERS = {
    "exact_match": "exact match: whole answers",
    "accuracy": "accuracy: characters",
}
"""What is drawn of tasks."""
_SMALL: dict[str, Any] = {"fontsize": 8, "color": "#444444"}
_DPI = 150
_PANEL = (5.6, 3.7)
_LEGEND_WIDTH, _LEGEND_LINE = 2.9, 0.16


def plot_extrapolation(rows: pd.DataFrame, path: Path, title: str) -> None:
    """The rows of one run's extrapolation.csv: a curve per strategy, panels per protocol.

    RunError, with the file named, for whatever goes wrong.
    """
    with drawing(path):
        save(_by_length(curves.of_strategies(rows), title), path)


def plot_comparison(rows: pd.DataFrame, path: Path, title: str, diverged: Collection[str] = ()) -> None:
    """All rows of every run of a comparison: a curve per config and strategy, over its seeds.

    `rows` has the columns of extrapolation.csv and `name`, the config's name. Of the names in `diverged`, seeds
    diverged in training. RunError, with the file named, for whatever goes wrong.
    """
    with drawing(path):
        save(_by_length(curves.of_configs(rows, diverged), title), path)


def plot_run(
    training: pd.DataFrame, validation: pd.DataFrame | None, extrapolation: pd.DataFrame | None, path: Path, title: str
) -> None:
    """The loss of one run by step, and by length for each strategy and protocol where that was evaluated.

    The frames are training.csv, validation.csv and extrapolation.csv. RunError, with the file named, for whatever
    goes wrong.
    """
    with drawing(path):
        save(_run(training, validation, extrapolation, title), path)


def tick_lengths(lengths: Sequence[int], always: Sequence[int] = ()) -> list[int]:
    """The lengths that have room for a label on a logarithmic axis, `always` among them."""
    space = math.log2(max(lengths) / min(lengths)) / 12
    chosen = sorted(set(always) & set(lengths))
    for length in sorted(set(lengths) - set(chosen), reverse=True):
        if all(abs(math.log2(length / other)) >= space for other in chosen):
            chosen.append(length)
    return sorted(chosen)


def _by_length(drawn: Sequence[Curve], title: str) -> Figure:
    """Right answers where all rows are of tasks, else losses."""
    if not drawn:
        raise PeError("there are no rows")
    of_tasks = all(name == INSTANCES for curve in drawn for name in curve.rows["protocol"])
    return _answers_by_length(drawn, title) if of_tasks else _losses_by_length(drawn, title)


def _answers_by_length(drawn: Sequence[Curve], title: str) -> Figure:
    """One panel for each measure, from nothing right to everything."""
    from matplotlib.figure import Figure

    rows = pd.concat([curve.rows for curve in drawn])
    with_answers = [curve for curve in drawn if len(curve.drawn)]
    shown = sorted(with_answers, key=lambda curve: curve.showing("exact_match").last, reverse=True)
    labels = {curve.label: textwrap.wrap(curve.label, 36) for curve in shown}
    width = _PANEL[0] * len(ANSWERS) + _LEGEND_WIDTH
    notes = [line for note in _notes(drawn, [INSTANCES]) for line in textwrap.wrap(note, round(width * 16))]
    legend = sum(0.04 + _LEGEND_LINE * len(lines) for lines in labels.values())
    height = max(_PANEL[1] + 0.9, legend + 0.3) + 0.14 * len(notes)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    panels = figure.subplots(1, len(ANSWERS), sharey=True, squeeze=False)[0]
    handles: dict[str, Line2D] = {}
    for axes, (measure, heading) in zip(panels, ANSWERS.items(), strict=True):
        for curve in shown:
            part = curve.showing(measure)
            handles.setdefault(part.label, _draw(axes, part, _opacity(len(shown))))
        trained = length_axis(axes, rows)
        axes.set(ylim=(-0.03, 1.03), xlabel=_length_of(INSTANCES))
        _head(axes, INSTANCES, [], trained)
        axes.set_title(heading, loc="left", pad=18)
    figure.suptitle("\n".join(textwrap.wrap(printed(title), round(width * 9))), x=0.01, ha="left")
    if handles:
        words = ["\n".join(labels[label]) for label in handles]
        figure.legend(handles.values(), words, loc="outside right upper", handlelength=5)
    figure.supxlabel("\n".join(notes), x=0.01, ha="left", linespacing=1.35, **_SMALL)
    return figure


def _losses_by_length(drawn: Sequence[Curve], title: str) -> Figure:
    """Columns of panels: protocols. Rows: all losses, and a close-up where they spread far."""
    from matplotlib.figure import Figure

    rows = pd.concat([curve.rows for curve in drawn])
    losses = rows[rows["drawn"]]["loss"]
    far = len(losses) > 0 and losses.min() > 0 and losses.max() > SPREAD * losses.min()
    protocols = list(rows["protocol"].unique())
    shown = sorted((curve for curve in drawn if len(curve.drawn)), key=lambda curve: curve.last, reverse=True)
    width = _PANEL[0] * len(protocols) + _LEGEND_WIDTH
    notes = [line for note in _notes(drawn, protocols) for line in textwrap.wrap(note, round(width * 16))]
    labels = {curve.label: textwrap.wrap(curve.label, 36) for curve in shown}
    legend = sum(0.04 + _LEGEND_LINE * len(lines) for lines in labels.values())
    height = max(_PANEL[1] * (2 if far else 1) + 0.9, legend + 0.3) + 0.14 * len(notes)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    panels = figure.subplots(2 if far else 1, len(protocols), sharex="col", sharey="row", squeeze=False)
    handles: dict[str, Line2D] = {}
    for column, protocol in zip(panels.T, protocols, strict=True):
        parts = [part for curve in shown if len((part := curve.of(protocol)).drawn)]
        for axes in column:
            for part in parts:
                handles.setdefault(part.label, _draw(axes, part, _opacity(len(parts))))
            trained = length_axis(axes, rows[rows["protocol"] == protocol])
        column[-1].set_xlabel(_length_of(protocol))
        _head(column[0], protocol, parts, trained)
    panels[0, 0].set_ylabel("loss (nats per character)")
    if far:
        _logarithmic(panels[0, 0])
        panels[0, 0].set_ylabel("loss (nats per character), logarithmic")
        panels[1, 0].set_ylabel("loss, close-up")
        panels[1, 0].set_ylim(losses.min() * 0.95, losses.min() * CLOSE_UP)
    figure.suptitle("\n".join(textwrap.wrap(printed(title), round(width * 9))), x=0.01, ha="left")
    if handles:
        words = ["\n".join(labels[label]) for label in handles]
        figure.legend(handles.values(), words, loc="outside right upper", handlelength=5)
    else:
        panels[0, 0].set_yticks([])
        panels[0, 0].text(0.5, 0.5, "nothing to draw", transform=panels[0, 0].transAxes, ha="center")
    figure.supxlabel("\n".join(notes), x=0.01, ha="left", linespacing=1.35, **_SMALL)
    return figure


def _run(
    training: pd.DataFrame, validation: pd.DataFrame | None, extrapolation: pd.DataFrame | None, title: str
) -> Figure:
    """One panel by step and one for each protocol by length, all with one axis of losses where that is possible."""
    from matplotlib.figure import Figure

    drawn = [] if extrapolation is None else curves.of_strategies(extrapolation)
    protocols = list(dict.fromkeys(name for curve in drawn for name in curve.rows["protocol"]))
    width = _PANEL[0] * (1 + len(protocols))
    notes = [
        line for note in (_notes(drawn, protocols) if drawn else []) for line in textwrap.wrap(note, round(width * 16))
    ]
    figure = Figure(figsize=(width, _PANEL[1] + 0.7 + 0.14 * len(notes)), dpi=_DPI, layout="constrained")
    by_step, *by_length = figure.subplots(1, 1 + len(protocols), squeeze=False)[0]
    finite = training[np.isfinite(training["loss"].astype(float))]
    by_step.plot(finite["step"], finite["loss"], color="#9a9a9a", linewidth=0.9, label="training")
    if validation is not None:
        by_step.plot(
            validation["step"], validation["loss"], color=COLOURS[0], linewidth=1.5, marker="o", label="validation"
        )
    by_step.set_xlabel("step")
    by_step.set_ylabel("loss (nats per character)")
    by_step.set_title("while training", loc="left")
    _clear(by_step)
    for axes, protocol in zip(by_length, protocols, strict=True):
        parts = [part for curve in drawn if len((part := curve.of(protocol)).drawn)]
        if protocol == INSTANCES:
            parts = [part.showing("exact_match") for part in parts]
            axes.set_ylabel("exact match")
        for part in parts:
            _draw(axes, part, _opacity(len(parts))).set_label(part.label)
        rows = pd.concat([curve.of(protocol).rows for curve in drawn])
        trained = length_axis(axes, rows)
        axes.set_xlabel(_length_of(protocol))
        _head(axes, protocol, parts, trained)
        losses = rows[rows["drawn"]]["loss"]
        if protocol != INSTANCES and len(losses) and 0 < SPREAD * losses.min() < losses.max():
            _logarithmic(axes)
            axes.set_ylabel("loss, logarithmic")
    for axes in (by_step, *by_length):
        if axes.get_legend_handles_labels()[1]:
            axes.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none", handlelength=5)
    figure.suptitle("\n".join(textwrap.wrap(printed(title), round(width * 9))), x=0.01, ha="left")
    figure.supxlabel("\n".join(notes), x=0.01, ha="left", linespacing=1.35, **_SMALL)
    return figure


def _opacity(curves: int) -> float:
    """That of bands: many of them would hide each other."""
    return 0.15 if curves <= 4 else 0.08 if curves <= 10 else 0.03


def _draw(axes: Axes, curve: Curve, band: float) -> Line2D:
    points = curve.points()
    colour = COLOURS[curve.look % len(COLOURS)]
    axes.fill_between(points.index, points["low"], points["high"], color=colour, alpha=band, linewidth=0)
    if len(points) == 1:  # a band has no area
        axes.vlines(points.index, points["low"], points["high"], color=colour, linewidth=1.0)
    (line,) = axes.plot(
        points.index,
        points["loss"],
        color=colour,
        linestyle=DASHES[(curve.dash + curve.look // len(COLOURS)) % len(DASHES)],
        linewidth=1.5,
        marker=MARKERS[curve.look % len(MARKERS)],
        markersize=6.5,
        markeredgewidth=0.5 if curve.dash == 0 else 1.3,
        markerfacecolor=colour if curve.dash == 0 else "white",
        markeredgecolor="white" if curve.dash == 0 else colour,
    )
    return line


def _length_of(protocol: str) -> str:
    return "length of the instance" if protocol == INSTANCES else "length of the evaluation window (characters)"


def length_axis(axes: Axes, rows: pd.DataFrame) -> Sequence[int]:
    """Lengths on a logarithmic axis, with a line at each training length; returns these."""
    lengths, trained = sorted(rows["length"].unique()), sorted(set(rows["train_length"]) - {0})  # 0: none so short
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(lengths + trained) / 1.15, max(lengths + trained) * 1.15)
    axes.set_xticks(ticks := tick_lengths(lengths, trained), [str(length) for length in ticks])
    axes.minorticks_off()
    _clear(axes)
    for length in trained:
        axes.axvline(length, color="#666666", linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    return trained


def _clear(axes: Axes) -> None:
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _head(axes: Axes, protocol: str, parts: Sequence[Curve], trained: Sequence[int]) -> None:
    """The protocol and its number of characters, and the name of the vertical line."""
    scored = {int(number) for part in parts for number in part.drawn["scored_chars"]}
    words = f", {scored.pop():,} characters scored" if len(scored) == 1 else ""
    axes.set_title(f"protocol {printed(protocol)}{words}", loc="left", pad=18)
    if not trained:
        return
    axes.annotate(
        f"training length{'s' if len(trained) > 1 else ''} {', '.join(map(str, trained))}",
        (trained[0], 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="left" if trained[0] <= 1.01 * math.sqrt(math.prod(axes.get_xlim())) else "right",
        va="bottom",
        **_SMALL,
    )


def _logarithmic(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_yscale("log")
    ticks = [digit * 10.0**power for power in range(-4, 4) for digit in (1, 1.5, 2, 3, 5, 7)]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _notes(drawn: Sequence[Curve], protocols: Sequence[str]) -> list[str]:
    """What the bands are, and what could not be drawn: once where it is so under every protocol."""
    notes = {protocol: curves.not_drawn([curve.of(protocol) for curve in drawn]) for protocol in protocols}
    common = [note for note in notes[protocols[0]] if all(note in of_one for of_one in notes.values())]
    single = [f"{protocol}: {note}" for protocol in protocols for note in notes[protocol] if note not in common]
    return [curves.bands([curve.of(protocols[0]) for curve in drawn]), *common, *map(printed, single)]
