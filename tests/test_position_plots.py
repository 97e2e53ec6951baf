"""Loss by the place in the window: which rows are drawn, and as which curve."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pe_cli.position_plots import BINS, binned, plot_positions, whole


def rows(protocol: str, length: int, first: int = 0, strategy: str = "none") -> pd.DataFrame:
    """The loss of a place is its number / 100; later places were scored more often."""
    places = [
        {"strategy": strategy, "length": length, "protocol": protocol, "position": place, "loss": place / 100}
        for place in range(first, length)
    ]
    return pd.DataFrame(places).assign(scored_chars=lambda found: 1 + found["position"], train_length=16)


def test_only_windows_that_count_as_a_whole_and_go_beyond_the_training_length_are_drawn() -> None:
    ends = rows("same_targets", 64, 56)
    short, long = rows("non_overlapping", 32), rows("non_overlapping", 64)
    long["scored_chars"] = [4] * 40 + [3] * 24  # the last window is shorter
    steps = rows("sliding", 64).assign(scored_chars=[1] * 56 + [9] * 8)  # the first window, and ends
    found = whole(pd.concat([ends, short, long, steps, rows("same_targets", 16).assign(scored_chars=2)]))
    assert found.to_dict("records") == long.to_dict("records")


def test_neighbouring_places_are_averaged_by_character() -> None:
    points = binned(rows("sliding", 2 * BINS).sample(frac=1, random_state=0))
    assert len(points) == BINS
    assert points.index[:2].tolist() == [0.5, 2.5]
    assert points.iloc[0] == pytest.approx((0 * 1 + 0.01 * 2) / 3)
    assert binned(rows("sliding", 5)).tolist() == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])


def test_a_picture_has_every_protocol_and_strategy(tmp_path: Path) -> None:
    chosen = pd.concat([rows(name, 64, strategy=how) for name in ("sliding", "non_overlapping") for how in "ab"])
    plot_positions(chosen, tmp_path / "positions.svg", "A run")
    text = (tmp_path / "positions.svg").read_text(encoding="utf-8")
    for words in ("sliding, windows of 64 characters", "non_overlapping, windows of 64", ">a<", ">b<", "A run"):
        assert words in text
