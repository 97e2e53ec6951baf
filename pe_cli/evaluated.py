"""What an evaluation of a run has written, read back."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pe_cli import files
from pe_cli.errors import RunError
from pe_cli.evaluation import COLUMNS, OF_TASKS, WINDOW_COLUMNS
from pe_cli.runs import Run
from pe_cli.schema import shown

TEXT_COLUMNS = ("run", "encoding", "positions", "strategy", "protocol", "status", "reason", "data")


class Evaluated(NamedTuple):
    """What an evaluation of a run found: the rows of extrapolation.csv, and of windows.csv with the text's hash."""

    rows: pd.DataFrame
    windows: pd.DataFrame


def read(run: Run) -> Evaluated:
    """What the run directory holds now: the next evaluation, by whichever command, replaces it."""
    windows = read_rows(run.path / "windows.csv", WINDOW_COLUMNS)
    return Evaluated(
        read_rows(run.path / "extrapolation.csv", COLUMNS), windows.assign(data_hash=run.text("data_hash"))
    )


def read_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV of ours: names stay text (`NA` and `007` are names), an empty number or reason is a missing one.

    RunError for a file that is no such table, or has anything but numbers where these belong.
    """
    text = {name: str for name in columns if name in TEXT_COLUMNS}
    numbers = {name: [""] for name in columns if name not in text}
    content = BytesIO(files.read_bytes(path))
    try:
        frame = pd.read_csv(content, dtype=text, keep_default_na=False, na_values=numbers)
        older = (set(columns) & OF_TASKS) - set(frame.columns)  # written before there were tasks
        frame = frame.assign(**dict.fromkeys(older, np.nan))[list(columns)]
    except (ValueError, KeyError):  # those of pandas and of Unicode are kinds of ValueError
        raise RunError(f"{path.absolute()} is damaged: it is no table of {', '.join(columns)}") from None
    for name in numbers:
        is_none = pd.to_numeric(frame[name], errors="coerce").isna() & frame[name].notna()
        if len(wrong := frame[name][is_none]):
            line, value = int(wrong.index[0]) + 2, shown(wrong.iloc[0])
            raise RunError(f"{path.absolute()} is damaged: line {line}: {name}: must be a number, not {value}")
    if "reason" in columns:
        frame["reason"] = frame["reason"].mask(frame["reason"] == "", None)
    return frame
