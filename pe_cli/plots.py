"""Pictures of results: loss against length. They read frames and know no models.

Matplotlib is imported when something is drawn, and draws in its own style without a display: neither MPLBACKEND
nor a matplotlibrc of the user changes a picture.
"""

from __future__ import annotations

import io
import math
import os
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from pe_cli import files
from pe_cli.errors import PeError, RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLUMNS = (
    "run", "encoding", "strategy", "seed", "train_length", "length", "protocol", "loss", "loss_low",
    "loss_high", "scored_chars", "status",
)  # fmt: skip
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00",
    "#882255", "#117733", "#8c6bb1", "#999933", "#7f7f7f", "#332288", "#b35806",
)  # fmt: skip
MARKERS = "os^Dv<>Pp*hX8"
"""One fewer than the colours, so that pairs of both repeat late."""
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)))
SPREAD = 3.0
"""Losses of which the largest is above this many times the smallest are drawn on a logarithmic axis."""
_SIZES = {"font.size": 10, "axes.titlesize": 9.5, "legend.fontsize": 8.5, "figure.titlesize": 12}
_NOTE_SIZE = 8
_DPI = 150


@dataclass(frozen=True)
class Series:
    """One run, or the seeds of one config, under one strategy. `look` and `dash` number its colour and dashes."""

    label: str
    look: int
    dash: int
    rows: pd.DataFrame

    def points(self) -> pd.DataFrame:
        """Mean loss and band by length (the index): columns loss, low, high, seeds."""
        ok = self.rows[self.rows["drawn"]]
        return pd.DataFrame.from_dict(
            {length: band(rows) for length, rows in ok.groupby("length")},
            orient="index",
            columns=["loss", "low", "high", "seeds"],
        ).sort_index()


def plot_extrapolation(rows: pd.DataFrame, path: Path, title: str) -> None:
    """The rows of one run's extrapolation.csv: a curve per strategy, a panel per protocol.

    RunError, with the file named, for whatever goes wrong.
    """
    with _drawing(path):
        rows = _checked(rows)
        series = []
        for number, (strategy, of_strategy) in enumerate(rows.groupby("strategy", sort=False)):
            encoding = str(of_strategy["encoding"].iloc[0])
            series.append(Series(_label(encoding, str(strategy)), number, number, of_strategy))
        _draw(series, path, title)


def plot_comparison(rows: pd.DataFrame, path: Path, title: str) -> None:
    """All rows of every run of a comparison: a curve per config and strategy, over its seeds.

    `rows` has the columns of extrapolation.csv and `name`, the config's name. RunError, with the file named, for
    whatever goes wrong.
    """
    with _drawing(path):
        rows = _checked(rows, "name")
        seeds = "-s" + rows["seed"].astype(str)
        config = [run.removesuffix(seed) for run, seed in zip(rows["run"], seeds, strict=True)]
        rows = rows.assign(config=config)
        names = rows.groupby("config", sort=False)[["name", "encoding"]].first()
        strategies = ["none", *(name for name in rows["strategy"].unique() if name != "none")]
        series = []
        for look, (key, name, encoding) in enumerate(names.itertuples()):
            if (names["name"] == name).sum() > 1:
                name = key
            elif encoding not in name:
                name = f"{name} ({encoding})"
            of_config = rows[rows["config"] == key]
            for dash, strategy in enumerate(strategies):
                of_strategy = of_config[of_config["strategy"] == strategy]
                if len(of_strategy):
                    series.append(Series(_label(name, strategy), look, dash, of_strategy))
        _draw(series, path, title)


def band(rows: pd.DataFrame) -> tuple[float, float, float, int]:
    """Mean loss, the ends of its band, and the number of seeds.

    The band is the 95 % interval of the mean (Student's t) from three seeds on, the two values of two, and the
    interval over windows of one.
    """
    losses = rows["loss"].to_numpy()
    n, mean = len(losses), float(losses.mean())
    if n == 1:
        return mean, float(rows["loss_low"].iloc[0]), float(rows["loss_high"].iloc[0]), n
    if n == 2:
        return mean, float(losses.min()), float(losses.max()), n
    half = float(stdtrit(n - 1, 0.975) * losses.std(ddof=1) / math.sqrt(n))
    return mean, mean - half, mean + half, n


def not_drawn(series: Sequence[Series]) -> list[str]:
    """What has no point, in words: `learned, shaw: undefined beyond 128`."""
    labels: dict[str, list[str]] = {}
    for one in series:
        drawn = one.rows[one.rows["drawn"]]["length"]
        seeds = one.rows["seed"].nunique()
        for status, rows in one.rows[~one.rows["drawn"]].groupby("status", sort=False):
            lost = rows.groupby("length")["seed"].nunique()
            for count, lengths in lost.groupby(lost):
                words = str(status).replace("_", " ") if status != "ok" else "loss not finite"
                if count < seeds:
                    words = f"{words} ({count} of {seeds} seeds)"
                if len(drawn) and min(lengths.index) > max(drawn):
                    words = f"{words} beyond {max(drawn)}"
                elif len(lengths) < one.rows["length"].nunique():
                    words = f"{words} at {', '.join(map(str, lengths.index))}"
                labels.setdefault(words, []).append(one.label)
    return [
        f"{'all' if len(named) == len(series) > 1 else ', '.join(named)}: {words}" for words, named in labels.items()
    ]


def tick_lengths(lengths: Sequence[int], always: Sequence[int] = ()) -> list[int]:
    """The lengths that have room for a label on a logarithmic axis, `always` among them."""
    space = math.log2(max(lengths) / min(lengths)) / 12
    chosen = sorted(set(always) & set(lengths))
    for length in sorted(set(lengths), reverse=True):
        if all(abs(math.log2(length / other)) >= space for other in chosen):
            chosen.append(length)
    return sorted(chosen)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, whole or not at all; equal pictures are equal files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    files.write_bytes(path, png.getvalue())


def _draw(series: Sequence[Series], path: Path, title: str) -> None:
    from matplotlib.figure import Figure

    rows = pd.concat([one.rows for one in series])
    protocols = list(rows["protocol"].unique())
    shown = sorted(series, key=_last_loss, reverse=True)
    count = sum(bool(one.rows["drawn"].any()) for one in series)
    width = 2.9 + 5.6 * len(protocols)
    notes = _notes(series, protocols)
    lines = [line for note in notes for line in textwrap.wrap(note, round(width * 16))]
    height = max(4.6, 0.19 * count + 1.0) + 0.14 * len(lines)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    panels = figure.subplots(1, len(protocols), sharey=True, squeeze=False)[0]
    handles: dict[str, Line2D] = {}
    for axes, protocol in zip(panels, protocols, strict=True):
        of_protocol = rows[rows["protocol"] == protocol]
        for one in _of(shown, protocol):
            if one.rows["drawn"].any():
                handles.setdefault(one.label, _curve(axes, one))
        _lengths(axes, of_protocol)
        scored = of_protocol[of_protocol["drawn"]]["scored_chars"].unique()
        words = f", {int(scored[0]):,} characters scored" if len(scored) == 1 else ""
        axes.set_title(f"protocol {protocol}{words}", pad=18)
    _losses(panels[0], rows)
    figure.suptitle("\n".join(textwrap.wrap(_plain(title), round(width * 9))))
    if handles:
        labels = ["\n".join(textwrap.wrap(label, 36)) for label in handles]
        figure.legend(handles.values(), labels, loc="outside right upper", handlelength=3.2)
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=_NOTE_SIZE, color="#444444", linespacing=1.35)
    save(figure, path)


def _curve(axes: Axes, series: Series) -> Line2D:
    points = series.points()
    colour = COLOURS[series.look % len(COLOURS)]
    axes.fill_between(points.index, points["low"], points["high"], color=colour, alpha=0.15, linewidth=0)
    (line,) = axes.plot(
        points.index,
        points["loss"],
        color=colour,
        linestyle=DASHES[series.dash % len(DASHES)],
        linewidth=1.5,
        marker=MARKERS[series.look % len(MARKERS)],
        markersize=5.5,
        markerfacecolor=colour if series.dash == 0 else "white",
    )
    return line


def _lengths(axes: Axes, rows: pd.DataFrame) -> None:
    """The axis of lengths, and the training length on it."""
    lengths, trained = sorted(rows["length"].unique()), sorted(rows["train_length"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(lengths + trained) / 1.15, max(lengths + trained) * 1.15)
    ticks = tick_lengths(lengths, trained)
    axes.set_xticks(ticks, [str(length) for length in ticks])
    axes.minorticks_off()
    axes.set_xlabel("length of the evaluation window (characters)")
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for length in trained:
        axes.axvline(length, color="#666666", linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    words = f"training length{'s' if len(trained) > 1 else ''} {', '.join(map(str, trained))}"
    early = trained[0] < math.sqrt(min(lengths) * max(lengths))
    axes.text(
        trained[0],
        1.01,
        words,
        transform=axes.get_xaxis_transform(),
        ha="left" if early else "right",
        va="bottom",
        fontsize=_NOTE_SIZE,
        color="#444444",
    )


def _losses(axes: Axes, rows: pd.DataFrame) -> None:
    """The axis of losses: logarithmic where one explodes."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    losses = rows[rows["drawn"]]["loss"]
    axes.set_ylabel("loss (nats per character)")
    if len(losses) and losses.min() > 0 and losses.max() > SPREAD * losses.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(
            FixedLocator([digit * 10.0**power for power in range(-4, 4) for digit in (1, 1.5, 2, 3, 5, 7)])
        )
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("loss (nats per character, logarithmic axis)")


def _notes(series: Sequence[Series], protocols: Sequence[str]) -> list[str]:
    seeds = sorted({int(n) for one in series for p in _of([one], protocols[0]) for n in p.points()["seeds"]})
    return [str(seeds), *not_drawn(_of(series, protocols[0]))]


def _of(series: Sequence[Series], protocol: str) -> list[Series]:
    parts = [Series(s.label, s.look, s.dash, s.rows[s.rows["protocol"] == protocol]) for s in series]
    return [part for part in parts if len(part.rows)]


def _last_loss(series: Series) -> float:
    points = series.points()
    return float(points["loss"].iloc[-1]) if len(points) else -math.inf


def _label(name: str, strategy: str) -> str:
    return _plain(name if strategy == "none" else f"{name} + {strategy}")


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _checked(rows: pd.DataFrame, *more: str) -> pd.DataFrame:
    """The rows with numbers for numbers, and a column `drawn`: there is a loss to draw."""
    lacking = [column for column in (*COLUMNS, *more) if column not in rows.columns]
    if lacking:
        raise RunError(f"the rows lack {', '.join(lacking)}")
    numbers = {name: pd.to_numeric(rows[name]) for name in ("loss", "loss_low", "loss_high", "scored_chars")}
    rows = rows.assign(**numbers).reset_index(drop=True)
    return rows.assign(drawn=(rows["status"] == "ok") & np.isfinite(rows["loss"].astype(float)))


@contextmanager
def _drawing(path: Path) -> Iterator[None]:
    """Matplotlib as it comes, and every failure a RunError that names the file."""
    backend = os.environ.pop("MPLBACKEND", None)  # an unknown one would stop the import
    try:
        import matplotlib
        from matplotlib import style

        with warnings.catch_warnings(), style.context(["default", _SIZES], after_reset=True):
            matplotlib.rcParams["text.parse_math"] = False  # a dollar sign in a name is one
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    except ImportError as error:
        raise RunError(f"cannot draw {os.path.abspath(path)}: {error}; pip install matplotlib") from error
    except PeError as error:
        raise RunError(f"cannot draw {os.path.abspath(path)}: {error}") from error
    except Exception as error:  # results are on the disk by now: no fault of a picture may end the command
        raise RunError(f"cannot draw {os.path.abspath(path)}: {type(error).__name__}: {error}") from error
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
