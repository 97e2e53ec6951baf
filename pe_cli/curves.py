"""The curves of a picture, from rows of extrapolation.csv: loss by length, with a band, over seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pe_cli.errors import PeError, canonical
from pe_cli.reports import label
from pe_cli.statistics import over_seeds

COLUMNS = (
    "run", "encoding", "strategy", "seed", "train_length", "length", "protocol", "loss", "loss_low",
    "loss_high", "scored_chars", "status",
)  # fmt: skip
MOST_DASHES = 6
_BANDS = {1: "95 % intervals over windows", 2: "from one seed to the other"}


@dataclass(frozen=True)
class Curve:
    """A run, or the seeds of a config, under one strategy. `look` and `dash` number its colour and dashes.

    A config has its own colour, and a strategy its dashes; the other way round where these would be too many. Rows may
    lack seeds that `diverged` in training. A `share` lies between 0 and 1, and so do its bands.
    """

    label: str
    look: int
    dash: int
    rows: pd.DataFrame
    diverged: bool = False
    share: bool = False

    @property
    def drawn(self) -> pd.DataFrame:
        """The rows that have a loss to draw."""
        return self.rows[self.rows["drawn"]]

    def of(self, protocol: str) -> Curve:
        return replace(self, rows=self.rows[self.rows["protocol"] == protocol])

    def showing(self, measure: str) -> Curve:
        """The same rows with a share, and its interval where that of the loss is shown, in place of the loss."""
        numbers = {end: pd.to_numeric(self.rows[f"{measure}{end}"]) for end in ("", "_low", "_high")}
        shown = self.rows["loss_low"].notna()
        rows = self.rows.assign(
            loss=numbers[""], loss_low=numbers["_low"].where(shown), loss_high=numbers["_high"].where(shown)
        )
        return replace(self, rows=rows, share=True)

    @property
    def last(self) -> float:
        """The loss at the greatest length; curves without any come last."""
        return float(self.points()["loss"].iloc[-1]) if len(self.drawn) else -math.inf

    def points(self) -> pd.DataFrame:
        """Mean loss and band by length (the index): columns loss, low, high, seeds."""
        found = pd.DataFrame.from_dict(
            {length: band(rows) for length, rows in self.drawn.groupby("length")},
            orient="index",
            columns=["loss", "low", "high", "seeds"],
        ).sort_index()
        return found.assign(low=found["low"].clip(0, 1), high=found["high"].clip(0, 1)) if self.share else found


def of_strategies(rows: pd.DataFrame) -> list[Curve]:
    """A curve for each strategy of one run."""
    rows = _checked(rows)
    curves = []
    for number, (strategy, part) in enumerate(rows.groupby("strategy", sort=False)):
        called = printed(label(str(part["encoding"].iloc[0]), str(strategy)))
        curves.append(Curve(called, number, number, part))
    return curves


def of_configs(rows: pd.DataFrame, diverged: Collection[str] = ()) -> list[Curve]:
    """A curve for each config and strategy; the seeds of a config differ in the end of the run's name alone.

    Of the names in `diverged`, seeds diverged in training and have no rows.

    Bands are over seeds alone: all runs are measured on the same windows, so that intervals over windows would
    overlap where paired differences are clear.
    """
    rows = _checked(rows, "name").assign(loss_low=np.nan, loss_high=np.nan)
    configs = [str(run).removesuffix(f"-s{seed}") for run, seed in zip(rows["run"], rows["seed"], strict=True)]
    rows = rows.assign(config=configs)
    names = rows.groupby("config", sort=False)[["name", "encoding"]].first()
    strategies = ["none", *(strategy for strategy in rows["strategy"].unique() if strategy != "none")]
    by_strategy = len(strategies) > max(MOST_DASHES, len(names))
    curves = []
    for number, (config, name, encoding) in enumerate(names.itertuples()):
        called = str(config) if (names["name"] == name).sum() > 1 else _named(str(name), str(encoding))
        of_config = rows[rows["config"] == config]
        if rows["train_length"].nunique() > 1:
            called = f"{called}, trained at {of_config['train_length'].iloc[0]}"
        for place, strategy in enumerate(strategies):
            part = of_config[of_config["strategy"] == strategy]
            look, dash = (place, number) if by_strategy else (number, place)
            if len(part):
                curves.append(Curve(printed(label(called, strategy)), look, dash, part, name in diverged))
    return curves


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
    return *over_seeds(losses.tolist()), n


def bands(curves: Iterable[Curve]) -> str:
    """What curves and bands show, in words."""
    points = [curve.points() for curve in curves]
    seeds = sorted({int(n) for part in points for n in part[part["low"].notna()]["seeds"]})
    many = [n for n in seeds if n > 1]
    words = [_BANDS[n] for n in seeds if n in _BANDS]
    if seeds and seeds[-1] > 2:
        words.append("95 % intervals of the mean over seeds")
    means = f"Curves: means over {' or '.join(map(str, many))} seeds. " if many else ""
    return f"{means}Bands: {'; '.join(words)}." if words else ""


def not_drawn(curves: Sequence[Curve]) -> list[str]:
    """What has no point, in words: `learned, shaw: undefined beyond 128`."""
    labels: dict[str, list[str]] = {}
    for curve in curves:
        last = curve.drawn["length"].max() if len(curve.drawn) else 0
        if curve.diverged and last:
            labels.setdefault("without the seeds that diverged in training, which flatters", []).append(curve.label)
        beyond = sorted(length for length in curve.rows["length"].unique() if length > last)
        seeds = curve.rows["seed"].nunique()
        for status, rows in curve.rows[~curve.rows["drawn"]].groupby("status", sort=False):
            lost = rows.groupby("length")["seed"].nunique()
            for count, lengths in lost.groupby(lost):
                words = str(status).replace("_", " ") if status != "ok" else "loss not finite"
                if count < seeds:
                    words = f"{words} ({count} of {seeds} seeds)"
                if last > 0 and list(lengths.index) == beyond:
                    words = f"{words} beyond {last}"
                elif len(lengths) < curve.rows["length"].nunique():
                    words = f"{words} at {', '.join(map(str, lengths.index))}"
                labels.setdefault(words, []).append(curve.label)
    everything = len(curves) if len(curves) > 1 else 0
    between = "; " if any("," in curve.label for curve in curves) else ", "
    return [f"{'all' if len(named) == everything else between.join(named)}: {words}" for words, named in labels.items()]


def printed(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _checked(rows: pd.DataFrame, *more: str) -> pd.DataFrame:
    """The rows with numbers for numbers, and a column `drawn`: there is a loss to draw."""
    lacking = [column for column in (*COLUMNS, *more) if column not in rows.columns]
    if lacking:
        raise PeError(f"the rows lack {', '.join(lacking)}")
    numbers = {name: pd.to_numeric(rows[name]) for name in ("loss", "loss_low", "loss_high", "scored_chars")}
    rows = rows.assign(**numbers).reset_index(drop=True)
    return rows.assign(drawn=(rows["status"] == "ok") & np.isfinite(rows["loss"].astype(float)))


def _named(name: str, encoding: str) -> str:
    """A config's name, and the encoding where it does not say it."""
    return name if canonical(encoding) in canonical(name) else f"{name} ({encoding})"
