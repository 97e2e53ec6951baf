"""The summary of a comparison: means over seeds, paired differences, and ranks in which runs can be tied.

Two runs are compared by pairs: the same seed, which means the same batches in training, and the same characters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pe_cli.reports import distinct, label, several_seeds
from pe_cli.statistics import (
    UNKNOWN,
    Estimate,
    each_over_windows,
    exact_sign,
    over_seeds,
    over_windows,
    seeds_needed,
    spread,
    verdict,
)

SUMMARY_COLUMNS = (
    "name", "encoding", "positions", "strategy", "train_length", "length", "protocol", "seeds", "loss", "loss_low",
    "loss_high", "baseline", "difference", "difference_low", "difference_high", "rank", "accuracy", "accuracy_low",
    "accuracy_high", "exact_match", "exact_match_low", "exact_match_high", "spread", "difference_spread", "clear",
    "seeds_needed", "variation",
)  # fmt: skip
ORDERING_COLUMNS = ("length", "protocol", "better", "worse", "variation", "verdict")
KEYS = ("name", "encoding", "positions", "strategy", "train_length", "length", "protocol")


@dataclass(frozen=True, eq=False)
class Scored:
    """The windows of one run and strategy at one length and protocol, by seed.

    `losses` may be anything else of which less is better. `places` tells which characters they are: text, and the
    number and size of each window.
    """

    places: dict[int, tuple[Any, ...]]
    losses: dict[int, np.ndarray]
    counts: dict[int, np.ndarray]

    @cached_property
    def means(self) -> dict[int, float]:
        return {seed: float(np.average(loss, weights=self.counts[seed])) for seed, loss in self.losses.items()}

    def shared(self, other: Scored) -> list[int]:
        """The seeds that both have; none where one of them was not measured on the same characters."""
        seeds = [seed for seed in self.places if seed in other.places]
        return seeds if all(self.places[seed] == other.places[seed] for seed in seeds) else []


@dataclass(frozen=True)
class Varied:
    """What a name of a varied comparison stands for: its name as configured, the variation, and its baseline."""

    base: str
    variation: str
    baseline: str


def summarise(
    rows: pd.DataFrame,
    windows: pd.DataFrame,
    baseline: str,
    diverged: Collection[str] = (),
    varied: Mapping[str, Varied] | None = None,
    strategy: str = "none",
) -> pd.DataFrame:
    """A row for each name, strategy, length and protocol of `rows`, which has the columns of comparison.csv.

    `windows` has the losses of single windows with name, seed and data_hash. Intervals are over seeds (Student's t)
    where some run has several, else over windows (bootstrap). Differences are to `baseline` with `strategy`. The names
    in `diverged` have no rank: the mean of the seeds that did not diverge would flatter them. Names in `varied` have
    the baseline, and are ranked among those, of their own variation. Tasks have shares of right answers, too, and are
    ranked by those.
    """
    scored, deciding = by_entry(windows), by_entry(decisive(windows))
    variants = varied or {}
    # one interval over windows beside some over seeds would be of another thing
    several = bool((rows.groupby(list(KEYS))["seed"].nunique() > 1).any())
    summary: list[dict[str, Any]] = []
    for values, group in rows.groupby(list(KEYS), sort=False):
        entry = dict(zip(KEYS, values, strict=True))
        good = group[group["status"] == "ok"]
        name = str(entry["name"])
        variant = variants.get(name, Varied(name, "", baseline))
        losses: list[float] = []
        differences: list[float] = []
        loss = difference = accuracy = exact_match = UNKNOWN
        if len(good) == len(group):
            losses, loss = good["loss"].tolist(), over_runs(good, "loss", several)
            accuracy, exact_match = (
                within_a_share(over_runs(good, key, several)) for key in ("accuracy", "exact_match")
            )
            own, other = (
                scored.get(place(entry)),
                scored.get(place({**entry, "name": variant.baseline, "strategy": strategy})),
            )
            if own is not None and other is not None:
                differences, difference = paired(own, other, several)
        summary.append(
            {
                **entry,
                "seeds": len(good),
                "loss": loss.value,
                "loss_low": loss.low,
                "loss_high": loss.high,
                "baseline": label(variant.baseline, strategy),
                "difference": difference.value,
                "difference_low": difference.low,
                "difference_high": difference.high,
                **dict(zip(("accuracy", "accuracy_low", "accuracy_high"), accuracy, strict=True)),
                **dict(zip(("exact_match", "exact_match_low", "exact_match_high"), exact_match, strict=True)),
                "spread": spread(losses),
                "difference_spread": spread(differences),
                "clear": verdict(difference),
                "seeds_needed": seeds_needed(differences),
                "variation": variant.variation,
            }
        )
    frame = pd.DataFrame(summary, columns=[name for name in SUMMARY_COLUMNS if name != "rank"])
    ranked = frame[frame["loss"].notna() & ~frame["name"].isin(list(diverged))]
    found: dict[Any, int | None] = {}
    for _, together in ranked.groupby(["length", "protocol", "variation"]):
        counted = distinct(together)
        of_each = [deciding.get(place(entry)) for entry in counted.to_dict("records")]
        alike = dict(zip(zip(counted["name"], counted["loss"], strict=True), ranks(of_each, several), strict=True))
        found |= {index: alike[together["name"][index], together["loss"][index]] for index in together.index}
    frame["rank"] = pd.Series(found, dtype="Int64").reindex(frame.index)
    frame["seeds_needed"] = frame["seeds_needed"].astype("Int64")
    return frame[list(SUMMARY_COLUMNS)]


def over_runs(rows: pd.DataFrame, key: str, several: bool) -> Estimate:
    """The mean over seeds; where no run has several, with the interval over windows."""
    if several:
        return over_seeds(rows[key].tolist())
    return Estimate(*(float(rows.iloc[0][name]) for name in (key, f"{key}_low", f"{key}_high")))


def within_a_share(estimate: Estimate) -> Estimate:
    """Student's t does not know that a share ends at 0 and 1."""
    return Estimate(estimate.value, *map(float, np.clip(estimate[1:], 0, 1)))


def decisive(windows: pd.DataFrame) -> pd.DataFrame:
    """What ranks are by in place of the losses: of a task, whether an answer is wrong; of a text, the losses."""
    if windows.empty:
        return windows
    asked = windows["right_chars"].notna()
    wrong = (windows["right_chars"] < windows["scored_chars"]).astype(float)
    return windows.assign(loss=windows["loss"].mask(asked, wrong), scored_chars=windows["scored_chars"].mask(asked, 1))


def place(entry: Mapping[Any, Any]) -> tuple[Any, ...]:
    return tuple(entry[key] for key in ("name", "strategy", "length", "protocol"))


def by_entry(windows: pd.DataFrame) -> dict[tuple[Any, ...], Scored]:
    """What was scored, by name, strategy, length and protocol."""
    found: dict[tuple[Any, ...], Scored] = {}
    if windows.empty:
        return found
    for values, rows in windows.groupby(["name", "strategy", "length", "protocol", "seed"], sort=False):
        *entry, number = values
        seed = int(str(number))
        one = found.setdefault(tuple(entry), Scored({}, {}, {}))
        rows = rows.sort_values("window")
        texts = rows["data_hash"].unique()
        one.places[seed] = (*texts, tuple(rows["window"]), tuple(rows["scored_chars"]))
        one.losses[seed], one.counts[seed] = rows["loss"].to_numpy(), rows["scored_chars"].to_numpy()
    return found


def paired(own: Scored, other: Scored, several: bool) -> tuple[list[float], Estimate]:
    """own − other at each seed that both have, and the mean with its interval; unknown where nothing is paired.

    The interval is over seeds, or over windows where no run has several.
    """
    seeds = own.shared(other)
    if not seeds:
        return [], UNKNOWN
    differences = [own.means[seed] - other.means[seed] for seed in seeds]
    if several:
        return differences, over_seeds(differences)
    [seed] = seeds
    return differences, over_windows((own.losses[seed] - other.losses[seed]) * own.counts[seed], own.counts[seed])


def ranks(entries: Sequence[Scored | None], several: bool) -> list[int | None]:
    """1 + the number of runs that are clearly better: paired, their interval excludes zero.

    So runs that cannot be told apart from any better one share the first rank, and a run is never put below another
    by chance alone. Who cannot be paired with the run that most can be paired with has no rank.
    """
    if len(entries) == 1:
        return [1]
    pairs = [[bool(one and other and one.shared(other)) for other in entries] for one in entries]
    most = max(pairs, key=sum, default=[])
    within = [number for number, paired in enumerate(most) if paired and sum(most) > 1]
    found: list[int | None] = [1 if number in within else None for number in range(len(entries))]
    for number in within:
        others = [index for index in within if index < number]
        for index, sign in zip(others, signs(entries[number], [entries[i] for i in others], several), strict=True):
            behind = number if sign > 0 else index
            found[behind] = (found[behind] or 0) + abs(sign)
    return found


def signs(own: Scored | None, others: Sequence[Scored | None], several: bool) -> list[int]:
    """For each other run: 1 where the own loss is clearly higher, −1 where it is clearly lower, else 0."""
    found = [0] * len(others)
    of_windows: dict[int, list[int]] = {}
    for index, other in enumerate(others):
        if own is None or other is None:
            continue
        seeds = own.shared(other)
        if several and seeds:
            found[index] = sign_of(over_seeds([own.means[seed] - other.means[seed] for seed in seeds]))
        elif seeds:
            of_windows.setdefault(seeds[0], []).append(index)
    for seed, indices in of_windows.items():
        assert own is not None
        losses = np.stack([chosen.losses[seed] for index in indices if (chosen := others[index]) is not None])
        differences, counts = own.losses[seed] - losses, own.counts[seed]
        if (counts == 1).all() and np.isin(differences, (-1, 0, 1)).all():  # answers, right or wrong
            of_each = [exact_sign(row) for row in differences]
        else:
            of_each = [sign_of(estimate) for estimate in each_over_windows(differences * counts, counts)]
        for index, sign in zip(indices, of_each, strict=True):
            found[index] = sign
    return found


def sign_of(estimate: Estimate) -> int:
    return {"worse": 1, "better": -1, None: 0}[verdict(estimate)]


def orderings(summary: pd.DataFrame, windows: pd.DataFrame, varied: Mapping[str, Varied]) -> pd.DataFrame:
    """What becomes of each clear ordering of two runs as configured, in each variation.

    The verdict is `same`, `reversed`, `unclear`, or `unknown` where one of the two has no rank there.
    """
    scored, several = by_entry(decisive(windows)), several_seeds(summary)
    found: list[dict[str, Any]] = []
    ranked = distinct(summary[summary["rank"].notna()])
    for (length, protocol), together in ranked.groupby(["length", "protocol"]):
        by_variation: dict[str, dict[tuple[str, str], Scored]] = {one.variation: {} for one in varied.values()}
        for entry in together.to_dict("records"):
            base = varied[entry["name"]].base if entry["name"] in varied else entry["name"]
            if (one := scored.get(place(entry))) is not None:
                by_variation.setdefault(entry["variation"], {})[base, entry["strategy"]] = one
        configured = by_variation.pop("", {})
        for (first, one), (second, two) in combinations(configured.items(), 2):
            [sign] = signs(one, [two], several)
            if not sign:
                continue
            better, worse = (second, first) if sign > 0 else (first, second)
            for variation, runs in by_variation.items():
                known = better in runs and worse in runs
                again = signs(runs[worse], [runs[better]], several)[0] if known else None
                verdict_there = {1: "same", -1: "reversed", 0: "unclear", None: "unknown"}[again]
                values = (length, protocol, label(*better), label(*worse), variation, verdict_there)
                found.append(dict(zip(ORDERING_COLUMNS, values, strict=True)))
    return pd.DataFrame(found, columns=list(ORDERING_COLUMNS))
