"""The tables of a comparison: means over seeds, paired differences, ranks, and what their files keep."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from summaries import SCORED, SPREAD, frames, row

from pe_cli import collection, files, plots, reports
from pe_cli.collection import Comparison, lost, tables
from pe_cli.comparison import ROW_COLUMNS, RUN_COLUMNS
from pe_cli.evaluated import read_rows
from pe_cli.evaluation import COLUMNS, OF_TASKS
from pe_cli.statistics import over_windows, seeds_needed
from pe_cli.summary import SUMMARY_COLUMNS, summarise


def summary_of(rows: list[Any], *diverged: str, baseline: str = "a", **spread: np.ndarray) -> dict[str, Any]:
    """The summary by name and strategy, missing values as None."""
    found = summarise(*frames(rows, **spread), baseline, diverged)
    assert tuple(found.columns) == SUMMARY_COLUMNS
    return {reports.label(entry["name"], entry["strategy"]): entry for entry in reports.records(found)}


def test_columns_are_those_of_the_contract_in_its_order() -> None:
    assert ("name", *COLUMNS) == ROW_COLUMNS
    promised = [
        "encoding", "positions", "strategy", "train_length", "length", "protocol", "seeds", "loss", "loss_low",
        "loss_high", "baseline", "difference", "difference_low", "difference_high", "rank",
    ]  # fmt: skip
    assert list(SUMMARY_COLUMNS[:16]) == ["name", *promised]
    shares = [f"{name}{end}" for name in ("accuracy", "exact_match") for end in ("", "_low", "_high")]
    assert list(SUMMARY_COLUMNS[16:22]) == shares
    assert SUMMARY_COLUMNS[22:] == ("spread", "difference_spread", "clear", "seeds_needed", "variation")
    assert RUN_COLUMNS[:6] == ("name", "config", "seed", "status", "reason", "directory")


# --- one seed ---


def test_one_seed_keeps_its_interval_over_windows() -> None:
    found = summary_of([row("a", 2.0), row("b", 2.5)])
    assert (found["a"]["loss"], found["a"]["loss_low"], found["a"]["loss_high"]) == (2.0, 1.9, 2.2)
    assert found["a"]["seeds"] == 1
    assert found["a"]["baseline"] == "a"


def test_the_difference_of_one_seed_is_paired_by_window() -> None:
    """Losses spread by 0.55 from window to window, and their difference by 0.02 only: four values 0.5 ± 0.01.

    Their standard error is 0.01 / √3, and t(3) at 97.5 % is 3.182446.
    """
    own = SPREAD + np.array([0.01, -0.01, 0.01, -0.01])
    found = summary_of([row("a", 2.0), row("b", 2.5)], b=own)
    expected = over_windows((0.5 + own - SPREAD) * SCORED, np.full(4, SCORED))
    got = tuple(found["b"][key] for key in ("difference", "difference_low", "difference_high"))
    assert got == pytest.approx(expected, abs=1e-9)
    assert got[2] - got[1] == pytest.approx(2 * 3.182446 * 0.01 / math.sqrt(3), rel=1e-5)
    assert [found["a"][key] for key in ("difference", "difference_low", "difference_high")] == [0.0, 0.0, 0.0]


def test_the_baseline_is_the_one_asked_for() -> None:
    found = summary_of([row("a", 2.0), row("b", 2.5)], baseline="b")
    assert found["a"]["difference"] == pytest.approx(-0.5)
    assert found["b"]["difference"] == 0
    assert {entry["baseline"] for entry in found.values()} == {"b"}


def test_a_strategy_is_compared_with_the_baseline_without_one() -> None:
    found = summary_of([row("a", 2.0), row("a", 1.8, strategy="interpolate"), row("b", 2.2, strategy="interpolate")])
    assert found["a + interpolate"]["difference"] == pytest.approx(-0.2)
    assert found["b + interpolate"]["difference"] == pytest.approx(0.2)


# --- several seeds ---


def test_three_seeds_have_the_interval_of_student() -> None:
    losses = [2.0, 2.2, 2.1]
    found = summary_of([row("a", loss, seed) for seed, loss in enumerate(losses)])["a"]
    expected = stats.t.interval(0.95, 2, loc=2.1, scale=stats.sem(losses))
    assert found["seeds"] == 3
    assert found["loss"] == pytest.approx(2.1)
    assert (found["loss_low"], found["loss_high"]) == pytest.approx(expected)


def test_the_difference_of_three_seeds_is_paired_by_seed() -> None:
    """A paired t-test: seeds differ by 0.4, and the difference by little."""
    one, two = [2.0, 2.4, 2.2], [2.11, 2.5, 2.33]
    rows = [row(name, loss, seed) for name, losses in (("a", one), ("b", two)) for seed, loss in enumerate(losses)]
    found = summary_of(rows)["b"]
    expected = stats.ttest_rel(two, one).confidence_interval(0.95)
    assert found["difference"] == pytest.approx(np.mean(two) - np.mean(one))
    assert (found["difference_low"], found["difference_high"]) == pytest.approx((expected.low, expected.high))


def test_a_seed_that_the_baseline_lacks_is_left_out_of_the_difference_alone() -> None:
    rows = [row("a", 2.0, 1), row("a", 2.4, 2), row("b", 2.1, 1), row("b", 2.6, 2), row("b", 9.0, 3)]
    found = summary_of(rows)
    assert found["b"]["seeds"] == 3
    assert found["b"]["loss"] == pytest.approx((2.1 + 2.6 + 9.0) / 3)
    assert found["b"]["difference"] == pytest.approx(0.15)
    assert summary_of(rows, baseline="b")["a"]["difference"] == pytest.approx(-0.15)


def test_a_loss_missing_at_one_seed_leaves_no_mean_and_no_rank() -> None:
    found = summary_of([row("a", 2.0, 1), row("a", 2.4, 2), row("b", 1.0, 1), row("b", None, 2, status="diverged")])
    assert [found["b"][key] for key in ("loss", "difference", "rank", "seeds")] == [None, None, None, 1]
    assert found["a"]["rank"] == 1


def test_differences_may_be_to_a_run_with_a_strategy() -> None:
    """One that has a loss where the run alone has none, as a table beyond its rows."""
    rows = [row("a", 2.0), row("a", 3.0, strategy="wrap"), row("b", 2.5)]
    found = summarise(*frames(rows), "a", strategy="wrap")
    assert found["difference"].tolist() == pytest.approx([-1.0, 0.0, -0.5])
    assert set(found["baseline"]) == {"a + wrap"}


# --- what cannot be paired ---


def test_windows_of_other_places_are_not_paired() -> None:
    """A window is known by its number: with other numbers of windows it lies elsewhere in the text."""
    rows, windows = frames([row("a", 2.0), row("b", 2.5)])
    fewer = windows[(windows["name"] == "a") | (windows["window"] < 3)]
    for baseline in ("a", "b"):
        found = summarise(rows, fewer, baseline)
        assert found[found["name"] != baseline]["difference"].isna().all()


@pytest.mark.parametrize("change", [{"data_hash": "another text"}, {"scored_chars": 16}, {"seed": 2}])
def test_windows_of_other_characters_or_seeds_are_not_paired(change: dict[str, Any]) -> None:
    rows, windows = frames([row("a", 2.0), row("b", 2.5)])
    for key, value in change.items():
        windows.loc[windows["name"] == "b", key] = value
    [other] = reports.records(summarise(rows, windows, "a"))[1:]
    assert other["difference"] is None
    assert other["loss"] == 2.5


# --- ranks ---


def test_ranks_are_by_loss_within_a_length_and_protocol_and_ties_share() -> None:
    rows = [row("a", 2.0), row("b", 1.5), row("c", 1.5), row("d", 3.0), row("e", None)]
    rows += [row("a", 1.0, length=128), row("b", 9.0, length=128), row("a", 0.5, protocol="non_overlapping")]
    found = summarise(*frames(rows), "a")
    ranks = {(entry["name"], entry["length"], entry["protocol"]): entry["rank"] for entry in reports.records(found)}
    assert ranks == {
        ("a", 64, "same_targets"): 3,
        ("b", 64, "same_targets"): 1,
        ("c", 64, "same_targets"): 1,
        ("d", 64, "same_targets"): 4,
        ("e", 64, "same_targets"): None,
        ("a", 128, "same_targets"): 1,
        ("b", 128, "same_targets"): 2,
        ("a", 64, "non_overlapping"): 1,
    }


def test_a_config_with_a_diverged_seed_has_a_mean_and_no_rank() -> None:
    found = summary_of([row("a", 2.0), row("b", 1.0), row("c", 3.0)], "b")
    assert [found[name]["rank"] for name in "abc"] == [1, None, 2]
    assert found["b"]["loss"] == 1.0


def test_what_cannot_be_told_apart_shares_a_rank() -> None:
    """b and c beat a at every seed; between themselves each wins at two of four. d is worse than all."""
    losses = {
        "a": [2.00, 2.10, 2.20, 2.30],
        "b": [1.90, 2.00, 2.11, 2.20],
        "c": [1.91, 1.99, 2.10, 2.21],
        "d": [2.50, 2.60, 2.71, 2.80],
    }
    found = summary_of([row(name, loss, seed) for name, own in losses.items() for seed, loss in enumerate(own)])
    assert [found[name]["rank"] for name in "abcd"] == [3, 1, 1, 4]
    assert [found[name]["clear"] for name in "abcd"] == [None, "better", "better", "worse"]
    # b and c overlap with a by far where they are not paired
    assert found["b"]["loss_low"] < found["a"]["loss"] < found["b"]["loss_high"]


def test_a_rank_counts_those_that_are_clearly_better_whatever_lies_between() -> None:
    """a is clearly better than b; c swings so much that it cannot be told apart from either."""
    losses = {"a": [1.0, 1.1, 1.2], "b": [1.1, 1.2, 1.3001], "c": [0.5, 1.1, 1.6]}
    found = summary_of([row(name, loss, seed) for name, own in losses.items() for seed, loss in enumerate(own)])
    assert [found[name]["rank"] for name in "abc"] == [1, 2, 1]


def test_one_seed_is_ranked_by_its_windows() -> None:
    """b is 0.1 below a in every window; c is 0.1 above or below in turn."""
    turns = SPREAD + np.array([0.1, -0.1, 0.1, -0.1])
    found = summary_of([row("a", 2.0), row("b", 1.9), row("c", 2.0)], c=turns)
    assert [found[name]["rank"] for name in "abc"] == [2, 1, 1]
    assert [found[name]["clear"] for name in "abc"] == [None, "better", None]
    assert found["b"]["spread"] is None
    assert found["b"]["seeds_needed"] is None


def test_runs_on_other_characters_are_not_ranked_against_each_other() -> None:
    rows, windows = frames([row("a", 2.0), row("b", 1.0)])
    windows.loc[windows["name"] == "b", "data_hash"] = "another text"
    assert summarise(rows, windows, "a")["rank"].isna().all()
    rows, windows = frames([row("a", 2.0), row("b", 1.0), row("c", 3.0)])
    windows.loc[windows["name"] == "b", "data_hash"] = "another text"
    found = summarise(rows, windows, "a")
    assert found["rank"].tolist() == [1, pd.NA, 2]
    [_, detail] = tables(Comparison([], rows, found), [])
    assert any(note.startswith("no rank: b: scored on other characters than most") for note in detail.notes)


def test_a_run_of_one_seed_among_runs_of_several_has_no_interval_and_beats_nobody() -> None:
    """Its interval would be over windows, and those of the others are over seeds."""
    rows = [row("a", 2.0, 1), row("a", 2.4, 2), row("b", 1.0, 1), row("c", 1.0, 1), row("c", 1.41, 2)]
    found = summary_of(rows)
    assert (found["b"]["loss"], found["b"]["difference"]) == (1.0, -1.0)
    assert [found["b"][key] for key in ("loss_low", "difference_low", "clear")] == [None, None, None]
    assert [found[name]["rank"] for name in "abc"] == [2, 1, 1]


def test_a_run_without_a_loss_has_no_gain() -> None:
    """The mean over the seeds that are left would stand beside those of all seeds."""
    rows = [row("a", 2.0, 1), row("a", 2.4, 2), row("b", 1.0, 1), row("b", None, 2, status="out_of_memory")]
    [_, detail] = tables(comparison_of(rows), [])
    assert {entry["run"]: entry["gain"] for entry in detail.rows} == {"a": 0.5, "b": None}


def test_rounding_is_no_difference() -> None:
    found = summary_of([row("a", 2.0), row("b", 2.0 + 5e-6), row("c", 2.0 + 5e-5)])
    assert [found[name]["rank"] for name in "abc"] == [1, 1, 3]


def test_spreads_and_the_seeds_that_would_be_needed() -> None:
    """Losses spread by 0.1, differences by half of their mean, 0.2: an effect of 2, which four pairs find."""
    found = summary_of([row(n, x, s) for n, own in
                        (("a", [2.0, 2.1, 2.2]), ("b", [2.1, 2.3, 2.5])) for s, x in enumerate(own)])  # fmt: skip
    assert found["a"]["spread"] == pytest.approx(0.1)
    assert found["b"]["difference"] == pytest.approx(0.2)
    assert found["b"]["difference_spread"] == pytest.approx(0.1)
    assert found["b"]["seeds_needed"] == seeds_needed([0.1, 0.2, 0.3]) == 5
    assert [found["a"][key] for key in ("difference_spread", "seeds_needed", "clear")] == [0.0, None, None]


# --- files and tables ---


def test_the_table_marks_what_is_clear_and_shows_spreads_of_several_seeds() -> None:
    rows = [row(n, x, s) for n, own in (("a", [2.0, 2.1]), ("b", [2.5, 2.6])) for s, x in enumerate(own)]
    several, single = (tables(comparison_of(part), [])[1] for part in (rows, [rows[0], rows[2]]))
    assert [column.heading for column in several.columns][-3:] == ["95 % interval", "clearly", "seeds needed"]
    assert "spread" in [column.heading for column in several.columns]
    assert [column.heading for column in single.columns][-1] == "clearly"
    assert [entry["clear"] for entry in several.rows] == [None, "worse"]
    assert any("without a correction for their number" in note for note in several.notes)


def test_a_baseline_without_a_loss_is_told() -> None:
    with_one, without = (tables(comparison_of([row("a", loss), row("b", 2.5)]), [])[1] for loss in (2.0, None))
    assert "difference: loss - loss of a, on the same characters" in with_one.notes[0]
    assert "no differences: a has no loss at 64, and --baseline names another run" in without.notes[0]
    assert "difference: loss - loss" not in without.notes[0]


@pytest.mark.parametrize("name", ["NA", "null", "nan", "None", "007", "1e3", 'a,b "c" [d]', "a|b"])
def test_names_come_back_from_a_file_as_they_are(name: str, tmp_path: Path) -> None:
    entries = [row(name, 2.0, run=name), row(name, None, run=name, reason="NA")]
    files.write_csv(tmp_path / "rows.csv", entries, ROW_COLUMNS)
    back = reports.records(read_rows(tmp_path / "rows.csv", COLUMNS))
    assert [entry["run"] for entry in back] == [name, name]
    assert [entry["reason"] for entry in back] == [None, "NA"]
    assert [(entry["loss"], entry["gain_low"]) for entry in back] == [(2.0, None), (None, None)]
    assert [entry["seed"] for entry in back] == [1, 1]


def test_rows_from_before_there_were_tasks_are_read(tmp_path: Path) -> None:
    before = [name for name in ROW_COLUMNS if name not in OF_TASKS]
    files.write_csv(tmp_path / "rows.csv", [row("a", 2.0)], before)
    [back] = reports.records(read_rows(tmp_path / "rows.csv", COLUMNS))
    assert (back["loss"], back["exact_match"]) == (2.0, None)


def test_tasks_rank_by_exact_match_and_shares_end_at_one() -> None:
    rows = [
        row(name, loss, seed, protocol="instances", accuracy=share, exact_match=share)
        for name, loss, shares in (("a", 1.0, (0.25, 0, 0.25)), ("b", 2.0, (1, 0.75, 1)), ("c", 3.0, (1, 0.5, 0.75)))
        for seed, share in enumerate(shares)
    ]
    found = summary_of(rows)
    assert [found[name]["rank"] for name in "abc"] == [3, 1, 1]  # b and c differ by no more than chance
    assert found["b"]["exact_match"] == pytest.approx(11 / 12)
    assert found["b"]["exact_match_high"] == 1.0
    assert found["a"]["exact_match_low"] == 0.0
    assert found["c"]["difference"] == pytest.approx(2.0)  # of the losses


def test_tasks_of_one_seed_rank_by_the_same_instances() -> None:
    """McNemar's exact test: of four instances no difference is clear, 2 (1/2)^4 = 0.125; of eight 2 (1/2)^8 is."""
    rows = [row(name, 1.0, protocol="instances", exact_match=share) for name, share in (("a", 0.0), ("b", 1.0))]
    all_rows, windows = frames(rows)
    assert summarise(all_rows, windows, "a")["rank"].tolist() == [1, 1]
    twice = pd.concat([windows, windows.assign(window=windows["window"] + 4)])
    assert summarise(all_rows, twice, "a")["rank"].tolist() == [2, 1]


def comparison_of(rows: list[dict[str, Any]], runs: list[dict[str, Any]] | None = None) -> Comparison:
    all_rows, windows = frames(rows)
    return Comparison(runs or [], all_rows, summarise(all_rows, windows, rows[0]["name"]))


def test_strategies_without_an_effect_are_neither_in_tables_nor_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No effect: no loss beyond the training length, or refused beyond the trained length of a part alone."""
    drawn: list[pd.DataFrame] = []
    monkeypatch.setattr(plots, "plot_comparison", lambda rows, *more: drawn.append(rows))

    def shown(rows: list[dict[str, Any]]) -> list[str]:
        found = comparison_of(rows)
        collection.draw(found, tmp_path, "x")
        pairs = drawn[-1][["name", "strategy"]].drop_duplicates().itertuples(index=False)
        labels = [reports.label(name, strategy) for name, strategy in pairs]
        for table in tables(found, []):
            assert sorted(entry["run"] for entry in table.rows) == sorted(labels)
        return labels

    def of(strategy: str, *statuses: str, seed: int = 1) -> list[dict[str, Any]]:
        return [
            row("a", 2.0 if status == "ok" else None, seed, strategy=strategy, length=length, status=status)
            for length, status in zip((16, 64, 128), statuses, strict=False)
        ]

    own = of("none", "ok", "undefined", "undefined")
    assert shown([*own, *of("window", "ok", "undefined", "undefined"), *of("wrap", "ok", "ok", "undefined")]) == [
        "a",
        "a + wrap",
    ]
    assert shown([*own, *of("log_n", "ok", "ok", "refused")]) == ["a"]
    assert shown([*own, *of("wrap", "ok", "ok", "ok"), *of("wrap", "ok", "diverged", "diverged", seed=2)]) == [
        "a",
        "a + wrap",
    ]
    assert len(drawn[-1]) == 9, "what a seed lost is drawn to be told"
    assert shown([*of("none", "ok"), *of("wrap", "ok")]) == ["a"]
    assert shown(of("wrap", "ok", "refused")) == ["a + wrap"], "without it there would be nothing"


def test_each_table_says_its_protocol_its_characters_and_its_largest_id() -> None:
    rows = [row("a", 2.0), row("a", 2.0, protocol="non_overlapping", scored_chars=200)]
    found = tables(comparison_of(rows), ["made by hand"])
    assert [table.title for table in found] == [
        "Loss in nats per character by length (same_targets)",
        "At 64 characters (same_targets)",
        "Loss in nats per character by length (non_overlapping)",
        "At 64 characters (non_overlapping)",
    ]
    for table, count in zip(found, (32, 32, 200, 200), strict=True):
        assert (
            f"scored characters: {count}; training length: 16; largest position id given to a model: 63" in table.notes
        )
    assert "made by hand" in found[0].notes


def test_the_detail_is_of_the_longest_length_that_somebody_was_measured_at() -> None:
    rows = [row("a", 2.0), row("a", None, length=128), row("b", 2.5), row("b", None, length=128)]
    assert tables(comparison_of(rows), [])[1].title == "At 64 characters (same_targets)"
    rows[3] = row("b", 2.2, length=128)
    assert tables(comparison_of(rows), [])[1].title == "At 128 characters (same_targets)"


def test_a_comparison_without_any_loss_still_has_its_tables() -> None:
    found = tables(comparison_of([row("a", None), row("b", None)]), [])
    assert "scored characters: 0" in found[0].markdown()
    assert "a: undefined at 64: no such ids" in found[1].markdown()


def test_runs_without_a_result_are_a_table_of_their_own() -> None:
    runs = [
        {"name": "a", "seed": 1, "status": "finished", "reason": None, "config": "a.yaml"},
        {"name": "b", "seed": 1, "status": "diverged", "reason": "the loss was nan at step 3", "config": "b.yaml"},
    ]
    last = tables(comparison_of([row("a", 2.0)], runs), [])[-1]
    assert last.title == "Runs without a result"
    assert [entry["name"] for entry in last.rows] == ["b"]
    assert "the loss was nan at step 3" in last.markdown()


def test_markdown_keeps_columns_whatever_the_name() -> None:
    text = tables(comparison_of([row("a|b\\c", 2.0)]), [])[0].markdown()
    [line] = [line for line in text.splitlines() if "2.000" in line]
    assert line == "| a\\|b\\\\c | 1 | 2.000 |"


def test_fewer_blocks_than_asked_for_are_said_of_same_targets_alone() -> None:
    rows = [row("a", 2.0), row("a", 2.0, protocol="non_overlapping", scored_chars=7), row("a", None, length=128)]
    assert reports.block_notes(rows, windows=4, scored=SCORED) == []
    [note] = reports.block_notes(rows, windows=10, scored=SCORED)
    assert "holds 4 blocks of 8" in note


@pytest.mark.parametrize(("scored", "before"), [(9, 7), (16, 0)])
def test_little_context_at_the_training_length_is_said(scored: int, before: int) -> None:
    """More than half of the window scored: what longer windows then gain is no use of distant context."""
    [note] = reports.block_notes([row("a", 2.0, train_length=16)], windows=1, scored=scored)
    assert f"{scored} of 16 characters are scored, the first of them with {before} before it" in note
    assert "evaluation.scored of 8 or less" in note
    assert reports.block_notes([row("a", 2.0, train_length=16, protocol="sliding")], windows=1, scored=scored) == []
    assert reports.block_notes([row("a", 2.0, train_length=16)], windows=1, scored=8) == []


def test_a_picture_knows_whose_seeds_diverged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(plots, "plot_comparison", lambda *arguments: given.extend(arguments))
    runs = [{"name": "a", "status": "finished"}, {"name": "a", "status": "diverged"}, {"name": "b", "status": "failed"}]
    collection.draw(comparison_of([row("a", 2.0), row("b", 2.0)], runs), tmp_path, "x")
    assert given[-1] == {"a"}


def test_of_a_varied_comparison_the_runs_as_configured_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(plots, "plot_comparison", lambda *arguments: given.extend(arguments))
    names = {"a": None, "b": None, "a, steps=5": "steps=5", "b, steps=5": "steps=5"}
    runs = [{"name": name, "status": "finished", "variation": recipe} for name, recipe in names.items()]
    collection.draw(comparison_of([row(name, 2.0) for name in names], runs), tmp_path, "x")
    rows, _, title, *_ = given
    assert rows["name"].tolist() == ["a", "b"]
    assert title == "x, as configured"


def test_runs_that_failed_at_every_length_are_found() -> None:
    """What is undefined or skipped is a result; running out of memory wherever it was tried is a failure."""
    full: dict[str, Any] = {"status": "out_of_memory", "reason": "too large"}
    rows = [row("a", None), row("a", None, length=128, **full)]
    rows += [row("b", 2.0), row("b", None, length=128, **full), row("c", None)]
    assert lost(comparison_of(rows).rows) == [("a-0123456789-s1", "too large")]


def test_files_of_a_comparison_hold_its_rows(tmp_path: Path) -> None:
    found = comparison_of([row("a", 2.0), row("b", None)], [{"name": "a", "status": "finished"}])
    collection.write(found, tmp_path, "Comparison: x", ["made by hand"])
    back = read_rows(tmp_path / "comparison.csv", COLUMNS)
    assert back["loss"].tolist()[0] == 2.0
    assert (tmp_path / "comparison.csv").read_text().splitlines()[0] == ",".join(ROW_COLUMNS)
    assert (tmp_path / "summary.csv").read_text().splitlines()[0] == ",".join(SUMMARY_COLUMNS)
    assert (tmp_path / "runs.csv").read_text().splitlines()[0] == ",".join(RUN_COLUMNS)
    assert (tmp_path / "comparison.md").read_text().startswith("# Comparison: x\n")
