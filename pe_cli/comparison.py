"""Many runs: what to run, checked before anything starts, and the tables over all of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from pe_cli import sources, strategies
from pe_cli.config import Experiment, resolve_source, training_identity
from pe_cli.errors import ConfigError, CorpusError, PeError, RunError, SectionError, called, nearest
from pe_cli.evaluated import Evaluated
from pe_cli.evaluation import COLUMNS
from pe_cli.lengths import short_validation, skipping, too_long
from pe_cli.runs import is_number, open_run, run_directory_name
from pe_cli.sources import Source
from pe_cli.yaml_source import Source as Document
from pe_cli.yaml_source import read_file

ROW_COLUMNS = ("name", *COLUMNS)
RUN_COLUMNS = (
    "name", "config", "seed", "status", "reason", "directory", "parameters", "train_loss", "validation_loss",
    "seconds", "device", "threads", "precision", "data_digest", "weight_sha256", "variation",
)  # fmt: skip
OF_NUMBERS = ("parameters", "train_loss", "validation_loss", "seconds", "threads")


@dataclass(frozen=True)
class Variation:
    """Values that every config of a comparison is given in place of its own; the text is empty for none."""

    text: str
    changes: Mapping[str, str]


AS_CONFIGURED = Variation("", {})


@dataclass(frozen=True)
class Planned:
    """One run of a comparison: a config at one seed, and the directory that it has."""

    config: Path
    experiment: Experiment
    identity: str
    name: str
    """The experiment's name, with the identity where another training of the comparison has it too, and the
    variation."""
    base: str
    """The same without the variation."""
    variation: str = ""

    @property
    def directory(self) -> str:
        return run_directory_name(self.experiment.name, self.identity, self.experiment.seed)


class Baseline(NamedTuple):
    """What paired differences refer to: a run, with a strategy."""

    name: str
    strategy: str = "none"


@dataclass(frozen=True)
class Refused:
    """A config that cannot be run, and why."""

    config: Path
    reason: str


@dataclass(frozen=True)
class Plan:
    """What is to be run, what cannot be, and what is to be said before it begins."""

    runs: list[Planned]
    refused: list[Refused]
    notes: list[str]


@dataclass(frozen=True)
class Outcome:
    """What became of a planned run."""

    planned: Planned
    status: str
    reason: str | None
    directory: Path | None
    evaluated: Evaluated | None = field(default=None, compare=False, repr=False)
    """Of a finished run what this command asked for: its files may hold what another one asked by now."""


def expand(patterns: Sequence[str]) -> list[Path]:
    """Configs from names and patterns, sorted within a pattern, each once. ConfigError where nothing matches."""
    found: dict[str, Path] = {}
    for pattern in patterns:
        matches = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        if not matches:
            kind = "nothing matches the pattern" if glob.has_magic(pattern) else "there is no file"
            raise ConfigError(f"{kind} '{pattern}' in {Path.cwd()}")
        for match in matches:
            found.setdefault(os.path.realpath(match), Path(match))
    return list(found.values())


def plan(
    configs: Sequence[Path],
    overrides: Mapping[str, str | int | None],
    fitted: Callable[[Experiment], Mapping[str, str]],
    seeds: Callable[[int], list[int] | None],
    variations: Sequence[Variation] = (AS_CONFIGURED,),
) -> Plan:
    """Every variation × config × seed. Texts are read and measured here, before any time is spent.

    `fitted` gives more overrides for an experiment, `seeds` the seeds from that of the first config (None: each
    config has its own). ConfigError for two configs that would share a run directory.
    """
    texts: dict[str, Source] = {}
    documents = {path: document_of(path) for path in configs}
    good: list[tuple[Path, Variation, Experiment, str]] = []
    refused: list[Refused] = []
    notes: dict[str, None] = {}
    for variation, path in product(variations, configs):
        try:
            document = documents[path]
            if isinstance(document, PeError):
                raise document
            changes = {**overrides, **variation.changes}
            more = fitted(resolve_source(document, changes, path).experiment)
            experiment = resolve_source(document, {**changes, **more}, path).experiment
            corpus = sources.load_once(experiment.data, texts)
            sources.check_length(corpus, experiment.training.longest, experiment.training.longest_key)
            notes.update(dict.fromkeys(fitting(corpus, experiment)))
        except PeError as error:
            named = str(path) in str(error)
            recipe = f"--vary {variation.text}: " if variation.text else ""
            refused.append(Refused(path, recipe + (str(error) if named else f"{path}: {error}")))
            continue
        good.append((path, variation, experiment, training_identity(experiment, corpus.data_hash)))
    first: dict[Path, str] = {}  # what tells configs of one name apart is the same under every variation
    identities: dict[str, set[str]] = {}
    for path, _, experiment, identity in good:
        identities.setdefault(experiment.name, set()).add(first.setdefault(path, identity))
    asked = seeds(good[0][2].seed) if good else None
    runs: dict[str, Planned] = {}
    called_so: dict[str, tuple[tuple[str, str, str], str]] = {}
    for path, variation, experiment, identity in good:
        alone = len(identities[experiment.name]) == 1
        base = experiment.name if alone else f"{experiment.name}-{first[path]}"
        name = f"{base}, {variation.text}" if variation.text else base
        # tables and seeds go by the name: what is composed may be what another config calls itself
        made = (experiment.name, identity, variation.text)
        who = f"{path} with --vary {variation.text}" if variation.text else str(path)
        other_made, other_who = called_so.setdefault(name, (made, who))
        if other_made != made:
            raise ConfigError(
                f"{who} and {other_who} would both be called '{name}': give one of the configs another name"
            )
        for seed in asked or [experiment.seed]:
            varied = experiment.model_copy(update={"seed": seed})
            run = Planned(path, varied, identity, name, base, variation.text)
            other = runs.setdefault(run.directory, run)
            if other.variation != variation.text:
                like = f"as with {other.variation}" if other.variation else "as it is configured"
                raise ConfigError(f"--vary {variation.text}: {path} is trained {like} already; leave it out")
            if other.config != path:
                raise ConfigError(
                    f"{path} and {other.config} describe the same training under the same name "
                    f"'{experiment.name}': give one of them another name"
                )
    return Plan(list(runs.values()), refused, list(notes))


def document_of(path: Path) -> Document | PeError:
    """The content of a config, read once: a pipe has nothing more to say the second time. An error is one to raise."""
    try:
        return read_file(path)
    except PeError as error:
        return error


def fitting(corpus: Source, experiment: Experiment) -> list[str]:
    """Notes on the lengths that the text cannot hold. CorpusError where it can hold none of those to evaluate."""
    text, evaluation = sources.extent(corpus), experiment.evaluation
    lost = too_long(text, evaluation)
    if sum(map(len, lost.values())) == len(evaluation.protocols) * len(evaluation.lengths):
        why = next(iter(next(iter(lost.values())).values()))
        raise CorpusError(f"{corpus.name}: no length can be evaluated: {why}")
    notes = [*short_validation(text, experiment.training), *skipping(text, evaluation)]
    return [f"{corpus.name}: {note}" for note in notes]


def baseline_of(planned: Sequence[Planned], asked: str | None) -> Baseline:
    """What paired differences refer to: the first config, or the one named, alone or with a strategy."""
    experiments = {run.base: run.experiment for run in planned}
    if asked is None:
        name = next(iter(experiments))
        evaluated = experiments[name].evaluation.strategies
        plain = any(one in ("none", strategies.ALL) for one in evaluated)
        return Baseline(name, "none" if plain else strategies.label(evaluated[0]))
    stated, plus, strategy = asked.rpartition("+")
    if called(asked, experiments) or not plus:  # a name may have a plus in it
        stated, strategy = asked, "none"
    known = called(stated, experiments)
    if known is None:
        raise ConfigError(f"--baseline: '{stated}' is not in this comparison{nearest(stated, experiments)}")
    try:
        found = Baseline(known, strategies.label(strategy.strip()))
    except SectionError as error:
        raise ConfigError(f"--baseline {asked}: {error}") from None
    evaluated = experiments[known].evaluation.strategies
    if strategies.ALL not in evaluated and found.strategy not in map(strategies.label, evaluated):
        raise ConfigError(f"--baseline: {known} is not evaluated with {found.strategy}; name it in --strategy")
    return found


def default_name(configs: Sequence[Path], quick: bool) -> str:
    """`rope-alibi` for up to three configs, else the name of their folder."""
    stems = [path.stem for path in configs]
    folders = {Path(os.path.realpath(path)).parent.name for path in configs}
    name = "-".join(stems) if len(stems) <= 3 else "-".join(sorted(folders))
    return f"{name}-quick" if quick else name


def run_rows(outcomes: Sequence[Outcome], refused: Sequence[Refused] = ()) -> list[dict[str, Any]]:
    """The rows of runs.csv: what is planned and, where training began, what run.json says; then what is left out."""
    rows = []
    for outcome in outcomes:
        info = told(outcome.directory)
        known = {
            "name": outcome.planned.name,
            "config": str(outcome.planned.config),
            "seed": outcome.planned.experiment.seed,
            "status": outcome.status,
            "reason": outcome.reason,
            "directory": str(outcome.directory) if outcome.directory is not None else None,
            "variation": outcome.planned.variation or None,
        }
        rows.append({key: known[key] if key in known else info.get(key) for key in RUN_COLUMNS})
    for config in refused:
        known = {"name": config.config.stem, "config": str(config.config), "status": "failed", "reason": config.reason}
        rows.append({key: known.get(key) for key in RUN_COLUMNS})
    return rows


def told(directory: Path | None) -> dict[str, Any]:
    """What run.json says, without numbers that are none; nothing of a damaged one, which costs its own run alone."""
    try:
        info = {} if directory is None else open_run(directory).info
    except RunError:
        return {}
    return {key: value for key, value in info.items() if key not in OF_NUMBERS or is_number(value)}
