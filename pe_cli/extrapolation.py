"""Evaluating one run and writing what came out: extrapolation.csv, windows.csv, positions.csv, table and picture."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from pe_cli import corpus as corpora
from pe_cli import files, plots, reports
from pe_cli.config import EvaluationConfig
from pe_cli.corpus import Corpus
from pe_cli.errors import RunError
from pe_cli.evaluation import COLUMNS, POSITION_COLUMNS, WINDOW_COLUMNS, Evaluation, Tables
from pe_cli.trained import Trained


def open_evaluation(trained: Trained, settings: EvaluationConfig, data: str | None = None) -> Evaluation:
    """A trained model with the text to evaluate it on: its own, or another one read by its alphabet.

    RunError where its own text has changed since the training.
    """
    return Evaluation(trained, text_for(trained, data), settings)


def text_for(trained: Trained, data: str | None) -> Corpus:
    info = trained.run.info
    corpus = corpora.load(data or trained.experiment.data, trained.alphabet)
    if data is None and corpus.data_hash != info["data_hash"]:
        raise RunError(
            f"{corpus.name}: the text is not the one that {trained.run.path.name} was trained on: SHA-256 now "
            f"{corpus.data_hash}, then {info['data_hash']}; to evaluate on it all the same, name it with --data"
        )
    return corpus


def extrapolate(evaluation: Evaluation, advance: Callable[[int], None]) -> Tables:
    """Run the evaluation and write its files into the run directory."""
    tables = evaluation.run(advance)
    path = evaluation.trained.run.path
    files.write_csv(path / "windows.csv", tables.windows, WINDOW_COLUMNS)
    files.write_csv(path / "positions.csv", tables.positions, POSITION_COLUMNS)
    files.write_csv(path / "extrapolation.csv", tables.extrapolation, COLUMNS)
    title = f"{path.name}: loss beyond the training length"
    files.write_text(path / "extrapolation.md", reports.document(title, [report(tables)]))
    plots.plot_extrapolation(
        pd.DataFrame(tables.extrapolation, columns=list(COLUMNS)), path / "extrapolation.png", title
    )
    return tables


def report(tables: Tables) -> reports.Table:
    """The table of a run for a terminal or a file."""
    rows = tables.extrapolation
    protocols = [reports.PROTOCOLS[name] for name in dict.fromkeys(row["protocol"] for row in rows)]
    return reports.extrapolation("Loss in nats per character", rows, protocols)
