"""Published claims as files: experiments, and the inequalities that hold if the claim does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError

from pe_cli import inequalities, sources, strategies, tasks
from pe_cli.comparison import Planned, fitting
from pe_cli.config import Experiment, resolve_source, training_identity
from pe_cli.errors import ConfigError, PeError, message
from pe_cli.inequalities import AT_LENGTHS, OF_TABLES, Inequality, Term, one_of
from pe_cli.inspection import inspect_encoding
from pe_cli.instances import TaskData, drawn, load_task
from pe_cli.lengths import too_long
from pe_cli.options import MOST_SEEDS, seed_list
from pe_cli.schema import Section, problems, shown
from pe_cli.sources import Source
from pe_cli.yaml_source import Source as Document
from pe_cli.yaml_source import read_file

HOLDS, CONTROL = "holds", "control"
OF_TASKS = ("accuracy", "exact_match", "margin")
MERGED = ("model", "training", "evaluation")
"""Blocks of which a run may say a part and `common` the rest; any other key of a run replaces that of `common`."""


def _items(value: Any) -> Any:
    """A text alone is a list of one: what stands between its commas is no item."""
    if value is None or isinstance(value, Mapping):
        raise ValueError(f"must be a text or a list of texts, not {shown(value)}")
    return [value] if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_items)]


class ClaimFile(Section):
    """The keys of a claim file."""

    claim: Text
    """What is claimed, in one sentence."""
    source: Text
    """Who claims it: paper, year, arXiv number."""
    seeds: Annotated[int, Field(ge=2, le=MOST_SEEDS)]
    why: Text
    """Why so many seeds, and what the experiment shows and does not show."""
    common: dict[str, Any] = {}
    """Keys of a config but `seed`, for all runs."""
    runs: dict[str, Any]
    """For each run what a config may say, merged over `common`."""
    asked: dict[str, Any] = {}
    """Tasks that trained runs are asked too, by the name that inequalities call them: `RUN on NAME`."""
    holds: Annotated[Texts, Field(min_length=1)]
    """Inequalities that hold, all of them, if the claim does."""
    control: Texts = ()
    """Inequalities without which the experiment says nothing."""


@dataclass(frozen=True)
class Claim:
    """A claim file, checked, and the runs that it needs."""

    path: Path
    stated: ClaimFile
    seeds: list[int]
    experiments: dict[str, Experiment]
    planned: list[Planned]
    asked: dict[str, dict[str, Any]]
    inequalities: list[tuple[str, Inequality]]
    """Each with `holds` or `control`."""
    tables: dict[tuple[Term, int], float]
    """What is measured at a seed without training."""
    notes: list[str]

    @property
    def name(self) -> str:
        return self.path.stem


def load(path: Path, seeds: str | None, overrides: Mapping[str, str], texts: dict[str, Source]) -> Claim:
    """A claim with all that can be wrong refused: ConfigError with file, key and what would be right.

    `seeds` stands in place of the file's; `texts` keeps what was read for other claims.
    """
    document = read_file(path)
    try:
        stated = ClaimFile.model_validate(document.values)
    except ValidationError as error:
        raise ConfigError(message(problems(error), lambda key: f"{document.place(key)}: ")) from None
    if not stated.runs:
        raise ConfigError(f"{document.place('runs')}: runs: names no run")
    experiments = {name: experiment_of(document, stated, name, path, overrides) for name in stated.runs}
    chosen = seed_list(str(stated.seeds) if seeds is None else seeds, next(iter(experiments.values())).seed) or []
    found: list[tuple[str, Inequality]] = []
    notes: dict[str, None] = {}
    corpora = {name: sources.load_once(experiment.data, texts) for name, experiment in experiments.items()}
    asked = {name: task_of(document, name, block) for name, block in stated.asked.items()}
    tables: dict[tuple[Term, int], float] = {}
    for kind, text in chain(((HOLDS, text) for text in stated.holds), ((CONTROL, text) for text in stated.control)):
        try:
            inequality = inequalities.inequality(text)
            for term in inequality.terms:
                one_of("run", term.run, experiments)
                check(term, experiments[term.run], corpora[term.run], asked)
                if term.measure in OF_TABLES:
                    for seed in chosen:
                        tables[term, seed] = neighbour_distance(at_seed(experiments[term.run], seed))
        except PeError as error:
            said = str(error) if text in str(error) else f"{shown(text)}: {error}"
            raise ConfigError(f"{document.place(kind)}: {kind}: {said}") from None
        found.append((kind, inequality))
    terms = [term for _, inequality in found for term in inequality.terms]
    for name in experiments:
        if name not in {term.run for term in terms}:
            raise ConfigError(f"{document.place(f'runs.{name}')}: runs.{name}: no inequality says anything of it")
    for name in asked:
        if name not in {term.data for term in terms}:
            raise ConfigError(f"{document.place(f'asked.{name}')}: asked.{name}: no inequality says anything of it")
    planned: dict[str, Planned] = {}
    for name in dict.fromkeys(term.run for term in terms if term.measure not in OF_TABLES):
        experiment, corpus = experiments[name], corpora[name]
        sources.check_length(corpus, experiment.training.longest, experiment.training.longest_key)
        notes.update(dict.fromkeys(fitting(corpus, experiment)))
        identity = training_identity(experiment, corpus.data_hash)
        for seed in chosen:
            run = Planned(path, at_seed(experiment, seed), identity, name, name)
            other = planned.setdefault(run.directory, run)
            if other is not run:
                raise ConfigError(
                    f"{document.place(f'runs.{name}')}: runs.{name} and runs.{other.name} are the same training under "
                    f"the same name: make one run of them, whose evaluation has what both are asked"
                )
    return Claim(path, stated, chosen, experiments, list(planned.values()), asked, found, tables, list(notes))


def experiment_of(
    document: Document, stated: ClaimFile, name: str, path: Path, overrides: Mapping[str, str]
) -> Experiment:
    """A run of the file as a config of its own; errors name the lines of the claim file."""
    blocks: dict[str, Any] = {"common": stated.common, f"runs.{name}": stated.runs[name]}
    values: dict[str, Any] = {"name": name}
    lines: dict[str, int] = {}
    empty: set[str] = set()
    for prefix, block in blocks.items():
        if block is None:
            continue
        if not isinstance(block, Mapping):
            raise ConfigError(f"{document.place(prefix)}: {prefix}: must be a block of keys, not {shown(block)}")
        if "seed" in block:  # differences are paired by seed, so that all runs have the same ones
            place, first = document.place(f"{prefix}.seed"), Experiment.model_fields["seed"].default
            raise ConfigError(
                f"{place}: {prefix}.seed: a claim has the same seeds for all runs, and {shown(block['seed'])} would be "
                f"ignored; `seeds:` at the top level says how many, from {first} on, and --seeds 1,2,3 which"
            )
        for key, value in block.items():
            before = values.get(key)
            both = key in MERGED and isinstance(before, Mapping) and isinstance(value, Mapping)
            values[key] = {**before, **value} if both else value  # type: ignore[dict-item]
        start = f"{prefix}."
        lines |= {key.removeprefix(start): line for key, line in document.lines.items() if key.startswith(start)}
        empty |= {key.removeprefix(start) for key in document.empty if key.startswith(start)}
    try:
        return resolve_source(Document(document.where, values, lines, frozenset(empty)), overrides, path).experiment
    except ConfigError as error:
        raise ConfigError(f"{error} (runs.{name})") from None


def at_seed(experiment: Experiment, seed: int) -> Experiment:
    return experiment.model_copy(update={"seed": seed})


def task_of(document: Document, name: str, block: Any) -> dict[str, Any]:
    place = f"{document.place(f'asked.{name}')}: asked.{name}"
    try:
        found = tasks.canonical_data(block)
    except (PeError, ValueError) as error:
        raise ConfigError(f"{place}: {error}") from None
    if isinstance(found, str):
        raise ConfigError(f"{place}: must be a task, such as {{task: passkey}}, not {shown(block)}")
    return found


def check(term: Term, experiment: Experiment, corpus: Source, asked: Mapping[str, dict[str, Any]]) -> None:
    """ConfigError where an evaluation of the run will not have this number."""
    if term.measure not in AT_LENGTHS:
        return
    evaluation = experiment.evaluation
    known = sorted(evaluation.lengths)
    if term.length not in known:
        raise ConfigError(f"{term.run} is not evaluated at {term.length}: evaluation.lengths is {known}")
    entries = [strategies.label(entry) for entry in evaluation.strategies if entry != strategies.ALL]
    if term.strategy not in entries and strategies.ALL not in evaluation.strategies:
        names = ", ".join(entries)
        raise ConfigError(f"{term.run} is not evaluated with {term.strategy}: evaluation.strategies is {names}")
    if term.data is not None:
        if not asked:
            raise ConfigError(f"there is no task under asked: {shown(term.data)}; the file asks none")
        one_of("task under asked:", term.data, asked)
        corpus = load_task(asked[term.data], corpus.alphabet)
    is_task = experiment.is_task or term.data is not None
    if term.measure in OF_TASKS and not is_task:
        raise ConfigError(f"{term.run} is trained on a text, which has no right answers: {term.measure} is of tasks")
    if term.measure == "gain" and is_task:
        raise ConfigError("a task has no gain: at another length it has other answers; compare two losses")
    protocols = evaluation.protocols if term.data is None else ("instances",)
    if term.protocol is not None and term.protocol not in protocols:
        names = ", ".join(protocols)
        raise ConfigError(f"{term.run} is not evaluated by {term.protocol}: evaluation.protocols is {names}")
    settings = evaluation.model_copy(update={"protocols": (term.protocol or protocols[0],), "lengths": (term.length,)})
    for reasons in too_long(sources.extent(corpus), settings).values():
        raise ConfigError(reasons[term.length])
    if (
        term.measure == "margin"
        and isinstance(corpus, TaskData)
        and drawn(corpus.task, term.length, "check").decoy is None
    ):
        raise ConfigError(f"the {corpus.name} has no margin: it has no wrong answer to compare the right one with")


def neighbour_distance(experiment: Experiment) -> float:
    """Mean ‖e(p + 1) − e(p)‖ of the rows of the table, as initialised, over the training length."""
    facts = inspect_encoding(experiment, experiment.training.length)
    if "table" not in facts:
        raise ConfigError(f"neighbour_distance: {experiment.encoding['name']} has no table; rows of one are compared")
    table = np.array(facts["table"], dtype=float)
    return float(np.linalg.norm(np.diff(table, axis=0), axis=1).mean())


def found(paths: Sequence[Path], seeds: str | None, overrides: Mapping[str, str]) -> tuple[list[Claim], list[str]]:
    """All claims that can be read, and what is wrong with the others."""
    texts: dict[str, Source] = {}
    claims, wrong = [], []
    for path in paths:
        try:
            claims.append(load(path, seeds, overrides, texts))
        except PeError as error:
            wrong.append(str(error) if str(path) in str(error) else f"{path}: {error}")
    return claims, wrong
