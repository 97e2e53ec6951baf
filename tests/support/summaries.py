"""Rows of comparisons and the windows that they come from, without any training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pe_cli.comparison import ROW_COLUMNS

SCORED = 8
SPREAD = np.array([-0.3, 0.1, 0.25, -0.05])
"""What is added to the mean loss in the four windows; it has the mean 0."""


def row(name: str, loss: float | None, seed: int = 1, **changes: Any) -> dict[str, Any]:
    """A row of comparison.csv; without a loss it is undefined."""
    ok = loss is not None
    low, high = (loss - 0.1, loss + 0.2) if loss is not None else (None, None)
    values = {
        "name": name, "run": f"{name}-0123456789-s{seed}", "encoding": "rope", "positions": "sequential",
        "strategy": "none", "seed": seed, "train_length": 16, "length": 64, "protocol": "same_targets", "loss": loss,
        "loss_low": low, "loss_high": high, "gain": 0.5 if ok else None,
        "scored_chars": 4 * SCORED if ok else 0, "status": "ok" if ok else "undefined",
        "reason": None if ok else "no such ids", "seconds": 0.1, "largest_id": 63.0 if ok else None,
    }  # fmt: skip
    return {**values, **changes}


def frames(rows: list[dict[str, Any]], **spread: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows, and windows whose losses are the row's plus a spread that each name may have for itself.

    Of a task the first of the four are right, as many as make the share of exact answers.
    """
    windows = [
        {
            **{key: entry[key] for key in ("name", "seed", "strategy", "length", "protocol")},
            "window": number,
            "loss": entry["loss"] + own,
            "scored_chars": SCORED,
            "right_chars": None if entry.get("exact_match") is None else SCORED - (number >= 4 * entry["exact_match"]),
            "data_hash": "text",
        }
        for entry in rows
        if entry["status"] == "ok"
        for number, own in enumerate(spread.get(entry["name"], SPREAD))
    ]
    return pd.DataFrame(rows, columns=list(ROW_COLUMNS)), pd.DataFrame(windows)
