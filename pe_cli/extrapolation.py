"""Evaluating one run and writing what came out: extrapolation.csv, windows.csv, positions.csv, table and picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from pe_cli import (
    answer_tables,
    attended,
    attention_plots,
    evaluated,
    files,
    plots,
    position_plots,
    reports,
    samplers,
    sources,
    strategies,
)
from pe_cli.attended import Attended
from pe_cli.built_in import sha256_hex
from pe_cli.config import INSTANCES_SCORED, PROTOCOLS, EvaluationConfig, data_named
from pe_cli.corpus import Corpus
from pe_cli.documents import Table, document
from pe_cli.errors import ConfigError, RunError
from pe_cli.evaluated import Evaluated
from pe_cli.evaluation import COLUMNS, POSITION_COLUMNS, WINDOW_COLUMNS, Evaluation, Tables
from pe_cli.protocols import INSTANCES
from pe_cli.sources import Source
from pe_cli.task_evaluation import TaskEvaluation
from pe_cli.text_evaluation import TextEvaluation
from pe_cli.trained import Trained
from pe_cli.versions import versions

MADE_FROM = "evaluation.json"
DIGESTS, TABLES = "tables", ("windows.csv", "positions.csv", "extrapolation.csv")


def open_evaluation(trained: Trained, settings: EvaluationConfig, data: str | None = None) -> Evaluation:
    """A trained model with the text to evaluate it on: its own, or another one read by its alphabet.

    RunError where its own text has changed since the training.
    """
    source = source_for(trained, data)
    is_task = not isinstance(source, Corpus)
    if is_task != trained.experiment.is_task:  # asked for what it was not trained on
        own = trained.experiment.evaluation
        if settings.protocols != own.protocols:
            right = f"is a task, which has the protocol {INSTANCES}" if is_task else "is a text; leave the protocol out"
            raise ConfigError(f"evaluation.protocols: {', '.join(settings.protocols)}: {source.name} {right}")
        usual: dict[str, Any] = {"protocols": (INSTANCES,) if is_task else PROTOCOLS[:1]}
        if settings.windows == own.windows:
            usual["windows"] = INSTANCES_SCORED if is_task else EvaluationConfig().windows
        settings = settings.model_copy(update=usual)
    if isinstance(source, Corpus):
        return TextEvaluation(trained, source, settings)
    return TaskEvaluation(trained, source, settings)


def source_for(trained: Trained, data: str | None) -> Source:
    asked = trained.experiment.data if data is None else data_named(data)
    corpus = sources.load(asked, trained.alphabet)
    then = trained.run.text("data_hash")
    if data is None and corpus.data_hash != then:
        raise RunError(
            f"{corpus.name}: the text is not the one that {trained.run.path.name} was trained on: SHA-256 now "
            f"{corpus.data_hash}, then {then}; to evaluate on it all the same, name it with --data"
        )
    return corpus


def write(evaluation: Evaluation, tables: Tables, warn: Callable[[str], None]) -> list[Path]:
    """Tables and pictures into the run directory, for `runs.alone`; a picture that cannot be drawn is warned of.

    What they were made from comes last: without it they are made again, whatever a kill has left of them. What an
    evaluation before this one saw of attention goes. Returns what there is to look at.
    """
    path = evaluation.trained.run.path
    for old in (MADE_FROM, "attention.csv", "attention.png"):
        files.remove(path / old)
    files.write_csv(path / "windows.csv", tables.windows, WINDOW_COLUMNS)
    files.write_csv(path / "positions.csv", tables.positions, POSITION_COLUMNS)
    files.write_csv(path / "extrapolation.csv", tables.extrapolation, COLUMNS)
    files.write_text(path / "extrapolation.md", document(title(evaluation), reported(evaluation, tables)))
    written = [path / "extrapolation.md"]
    try:
        written += draw(evaluation, tables)
    except RunError as error:
        warn(str(error))
    if all(row["status"] != "out_of_memory" for row in tables.extrapolation):  # which may go better next time
        files.write_json(path / MADE_FROM, made_from(evaluation) | {DIGESTS: digests(path)})
    return written


def made_from(evaluation: Evaluation) -> dict[str, Any]:
    """Everything that decides the tables of an evaluation."""
    return {
        "weight_sha256": evaluation.trained.run.text("weight_sha256"),
        "data_hash": evaluation.corpus.data_hash,
        "evaluation": evaluation.settings.model_dump(mode="json"),
        "device": evaluation.device.type,
        "versions": versions(),
    }


def digests(path: Path) -> dict[str, str]:
    """The SHA-256 (hex) of each table in a run directory."""
    return {name: sha256_hex(files.read_bytes(path / name)) for name in TABLES}


def current(evaluation: Evaluation) -> Evaluated | None:
    """What the run directory holds, if it is whole and what this evaluation would write."""
    run = evaluation.trained.run
    try:
        found, whole = evaluated.read(run), {DIGESTS: digests(run.path)}
        record = json.loads(files.read_bytes(run.path / MADE_FROM))
    except (RunError, ValueError, TypeError, RecursionError):
        return None
    return found if record == made_from(evaluation) | whole else None


def draw(evaluation: Evaluation, tables: Tables) -> list[Path]:
    """extrapolation.png, and positions.png where whole windows count. RunError for one that cannot be drawn."""
    run = evaluation.trained.run.path
    picture, by_place = run / "extrapolation.png", run / "positions.png"
    for path in (picture, by_place):
        files.remove(path)  # an older one would show other numbers
    plots.plot_extrapolation(pd.DataFrame(tables.extrapolation, columns=list(COLUMNS)), picture, title(evaluation))
    places = pd.DataFrame(tables.positions, columns=list(POSITION_COLUMNS))
    shown = position_plots.whole(places.assign(train_length=evaluation.train_length))
    if shown.empty or not isinstance(evaluation, TextEvaluation):
        return [picture]
    position_plots.plot_positions(shown, by_place, f"{run.name}: loss by the place in the window")
    return [picture, by_place]


def write_attention(evaluation: TextEvaluation, found: Attended, warn: Callable[[str], None]) -> list[Path]:
    """attention.csv and its picture, as `write`."""
    path = evaluation.trained.run.path / "attention.csv"
    files.write_csv(path, found.rows, attended.COLUMNS)
    try:
        return [path, draw_attention(evaluation, found)]
    except RunError as error:
        warn(str(error))
        return [path]


def draw_attention(evaluation: TextEvaluation, found: Attended) -> Path:
    """attention.png. RunError where it cannot be drawn: the rows are there."""
    trained = evaluation.trained
    path = trained.run.path / "attention.png"
    files.remove(path)  # an older one would show other numbers
    table = report_attention(evaluation, found)
    attention_plots.plot_attention(
        pd.DataFrame(found.rows, columns=list(attended.COLUMNS)),
        evaluation.train_length,
        path,
        f"{trained.run.path.name}: where the scored characters look",
        table.notes,
    )
    return path


def report_attention(evaluation: TextEvaluation, found: Attended) -> Table:
    """The table of what was attended to, for a terminal."""
    facts = [*attended.waves_in_words(evaluation.trained.model.encoding, evaluation.shown), *found.reasons]
    return reports.attention(pd.DataFrame(found.rows, columns=list(attended.COLUMNS)), attended.FIRST, facts)


def title(evaluation: Evaluation) -> str:
    own = evaluation.corpus.data_hash == evaluation.trained.run.text("data_hash")
    what = "loss" if isinstance(evaluation, TextEvaluation) else "right answers"
    where = "" if own else f" ({evaluation.corpus.name})"
    return f"{evaluation.trained.run.path.name}: {what}{where} beyond the training length"


def reported(evaluation: Evaluation, tables: Tables) -> list[Table]:
    """The table of a run, and where depths were asked one that tells them apart."""
    windows = pd.DataFrame(tables.windows, columns=list(WINDOW_COLUMNS))
    return [report(evaluation, tables), *answer_tables.by_depth(windows)]


def report(evaluation: Evaluation, tables: Tables) -> Table:
    """The table of a run for a terminal or a file."""
    rows, settings, run = tables.extrapolation, evaluation.settings, evaluation.trained
    protocols = [reports.PROTOCOLS[name] for name in settings.protocols]
    notes = [
        *strategies.left_out(run.model.encoding.name, evaluation.asked, [row["strategy"] for row in rows]),
        *evaluation.unchanged_parts(),
        *samplers.notes(run.experiment.positions),
    ]
    name = evaluation.corpus.name
    if isinstance(evaluation, TaskEvaluation):
        options = ", ".join(f"{key} {value}" for key, value in evaluation.data.task.options.model_dump().items())
        about = f"{name} ({options}), {settings.windows} instances at each length, which counts "
        facts = [*protocols, about + evaluation.data.task.counted, *notes]
        if not evaluation.train_length:
            facts.append(f"no instance is as short as the windows of training, {run.experiment.training.longest}")
        return answer_tables.extrapolation(f"Right answers to the {name}", rows, facts)
    assert isinstance(evaluation, TextEvaluation)
    held_out = f"text: {name}, {evaluation.text.held_out:,} held-out characters"
    fewer = reports.block_notes(rows, settings.windows, settings.scored)
    return reports.extrapolation("Loss in nats per character", rows, [*protocols, held_out, *fewer, *notes])
