"""Many runs: what to run, checked before anything starts, and the tables over all of them."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pe_cli import corpus as corpora
from pe_cli.config import Experiment, resolve, training_identity
from pe_cli.errors import ConfigError, PeError, nearest
from pe_cli.evaluation import COLUMNS
from pe_cli.runs import open_run, run_directory_name
from pe_cli.statistics import UNKNOWN, Estimate, over_seeds, over_windows

ROW_COLUMNS = ("name", *COLUMNS)
SUMMARY_COLUMNS = (
    "name", "encoding", "positions", "strategy", "train_length", "length", "protocol", "seeds", "loss", "loss_low",
    "loss_high", "baseline", "difference", "difference_low", "difference_high", "rank",
)  # fmt: skip
RUN_COLUMNS = (
    "name", "config", "seed", "status", "reason", "directory", "parameters", "train_loss", "validation_loss",
    "seconds", "device", "threads", "precision", "data_digest", "weight_sha256",
)  # fmt: skip


@dataclass(frozen=True)
class Planned:
    """One run of a comparison: a config at one seed, and the directory that it has."""

    config: Path
    experiment: Experiment
    identity: str

    @property
    def directory(self) -> str:
        return run_directory_name(self.experiment.name, self.identity, self.experiment.seed)


@dataclass(frozen=True)
class Outcome:
    """What became of a planned run."""

    planned: Planned
    status: str
    reason: str | None
    directory: Path | None


def expand(patterns: Sequence[str]) -> list[Path]:
    """Configs from names and patterns, sorted within a pattern, each once. ConfigError where nothing matches."""
    found: dict[Path, Path] = {}
    for pattern in patterns:
        matches = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        if not matches:
            kind = "nothing matches the pattern" if glob.has_magic(pattern) else "there is no file"
            raise ConfigError(f"{kind} '{pattern}' in {Path.cwd()}")
        for match in matches:
            found.setdefault(Path(match).resolve(), Path(match))
    return list(found.values())


def plan(
    configs: Sequence[Path], seeds: Sequence[int] | None, overrides: Mapping[str, str | int | None]
) -> tuple[list[Planned], list[tuple[Path, PeError]]]:
    """Every config × seed, and the configs that cannot be run with the reason of each."""
    planned: list[Planned] = []
    refused: list[tuple[Path, PeError]] = []
    hashes: dict[str, str] = {}
    for path in configs:
        try:
            experiment = resolve(path, overrides).experiment
            if experiment.data not in hashes:
                hashes[experiment.data] = corpora.load(experiment.data).data_hash
            corpora.check_length(corpora.load(experiment.data), experiment.training.length)
        except PeError as error:
            refused.append((path, error))
            continue
        for seed in seeds or [experiment.seed]:
            seeded = experiment.model_copy(update={"seed": seed})
            planned.append(Planned(path, seeded, training_identity(seeded, hashes[experiment.data])))
    by_directory: dict[str, Path] = {}
    for run in planned:
        other = by_directory.setdefault(run.directory, run.config)
        if other != run.config:
            raise ConfigError(
                f"{run.config} and {other} describe the same training under the same name "
                f"'{run.experiment.name}': give one of them another name"
            )
    return planned, refused


def baseline_name(planned: Sequence[Planned], name: str | None) -> str:
    """The run that paired differences refer to: the first config, or the one named."""
    names = list(dict.fromkeys(run.experiment.name for run in planned))
    if name is None:
        return names[0]
    if name not in names:
        raise ConfigError(f"--baseline: '{name}' is not in this comparison{nearest(name, names)}")
    return name


def default_name(configs: Sequence[Path], quick: bool) -> str:
    """`rope-alibi` for up to three configs, else the name of their folder."""
    stems = [path.stem for path in configs]
    folders = {path.resolve().parent.name for path in configs}
    name = "-".join(stems) if len(stems) <= 3 else "-".join(sorted(folders))
    return f"{name}-quick" if quick else name


def summarise(rows: pd.DataFrame, windows: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Over seeds: mean loss, interval, paired difference to the baseline, and rank within a length and protocol.

    `rows` has ROW_COLUMNS, `windows` the losses of single windows with name and seed. Intervals are over seeds
    (Student's t) where there are several, else over windows (bootstrap).
    """
    keys = ["name", "encoding", "positions", "strategy", "train_length", "length", "protocol"]
    summary: list[dict[str, Any]] = []
    for values, group in rows.groupby(keys, sort=False):
        entry = dict(zip(keys, values, strict=True))
        good = group[group["status"] == "ok"]
        loss = difference = UNKNOWN
        if len(good) == len(group):
            single = good.iloc[0]
            loss = (
                Estimate(single["loss"], single["loss_low"], single["loss_high"])
                if len(good) == 1
                else over_seeds(good["loss"].tolist())
            )
            difference = paired_difference(entry, windows, baseline)
        summary.append(
            {
                **entry,
                "seeds": len(good),
                "loss": loss.value,
                "loss_low": loss.low,
                "loss_high": loss.high,
                "baseline": baseline,
                "difference": difference.value,
                "difference_low": difference.low,
                "difference_high": difference.high,
            }
        )
    frame = pd.DataFrame(summary, columns=[name for name in SUMMARY_COLUMNS if name != "rank"])
    frame["rank"] = frame.groupby(["length", "protocol"])["loss"].rank(method="min").astype("Int64")
    return frame


def paired_difference(entry: Mapping[str, Any], windows: pd.DataFrame, baseline: str) -> Estimate:
    """loss − baseline's loss on the same windows at the same seed; unknown where the baseline has no such row.

    The baseline is taken without a strategy: what a strategy does shows in its own row.
    """
    here = windows[(windows["length"] == entry["length"]) & (windows["protocol"] == entry["protocol"])]
    own = here[(here["name"] == entry["name"]) & (here["strategy"] == entry["strategy"])]
    other = here[(here["name"] == baseline) & (here["strategy"] == "none")]
    pairs = own.merge(other, on=["data_hash", "seed", "window", "scored_chars"], suffixes=("", "_baseline"))
    if pairs.empty or len(pairs) != len(own):
        return UNKNOWN
    difference = (pairs["loss"] - pairs["loss_baseline"]) * pairs["scored_chars"]
    if pairs["seed"].nunique() == 1:
        return over_windows(difference.to_numpy(), pairs["scored_chars"].to_numpy())
    sums = difference.groupby(pairs["seed"]).sum()
    counts = pairs.groupby("seed")["scored_chars"].sum()
    return over_seeds((sums / counts).tolist())


def run_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The rows of runs.csv: what is planned and, where training began, what run.json says."""
    rows = []
    for outcome in outcomes:
        info = open_run(outcome.directory).info if outcome.directory is not None else {}
        facts = {key: info.get(key) for key in RUN_COLUMNS}
        rows.append(
            {
                **facts,
                "name": outcome.planned.experiment.name,
                "config": str(outcome.planned.config),
                "seed": outcome.planned.experiment.seed,
                "status": outcome.status,
                "reason": outcome.reason,
                "directory": str(outcome.directory) if outcome.directory is not None else None,
            }
        )
    return rows
