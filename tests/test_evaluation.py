"""Loss by length: known curves come out as they are, and lengths do not touch each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from stand_in import TRAIN_LENGTH, KnownLoss, curve, cycle, evaluation_of, model_of, noise, quietly

from pe_cli import evaluation as module
from pe_cli.evaluation import COLUMNS, Evaluation, perplexity
from pe_cli.statistics import over_windows

LENGTHS = [8, 16, 32, 48, 64]


def rows_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    return evaluation.run(quietly).extrapolation


def by_length(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {row["length"]: row for row in rows}


# --- what comes out ---


def test_columns_are_those_of_the_contract_in_its_order() -> None:
    promised = [
        "run", "encoding", "positions", "strategy", "seed", "train_length", "length", "protocol", "loss", "loss_low",
        "loss_high", "gain", "gain_low", "gain_high", "bits_per_char", "perplexity", "scored_chars", "status", "reason",
        "seconds",
    ]  # fmt: skip
    assert list(COLUMNS[: len(promised)]) == promised
    assert COLUMNS[len(promised) :][:2] == ("largest_id", "data")
    shares = [f"{name}{end}" for name in ("accuracy", "exact_match", "margin") for end in ("", "_low", "_high")]
    assert list(COLUMNS[len(promised) + 2 :]) == shares
    assert module.WINDOW_COLUMNS[:5] == ("strategy", "length", "protocol", "window", "loss")
    assert module.WINDOW_COLUMNS[5:] == ("right_chars", "margin", "depth", "scored_chars")
    tables = evaluation_of(KnownLoss(curve), cycle(2000), lengths=LENGTHS).run(quietly)
    assert {tuple(row) for row in tables.extrapolation} == {COLUMNS}
    assert {tuple(row) for row in tables.windows} == {module.WINDOW_COLUMNS}
    assert {tuple(row) for row in tables.positions} == {module.POSITION_COLUMNS}


def test_a_row_says_what_was_measured() -> None:
    [row] = rows_of(evaluation_of(KnownLoss(curve), cycle(2000), lengths=[32], strategies=["none"]))
    said = {key: row[key] for key in ("run", "encoding", "positions", "strategy", "seed", "train_length", "length")}
    assert said == {
        "run": "run-0123456789-s3",
        "encoding": "none",
        "positions": "sequential",
        "strategy": "none",
        "seed": 3,
        "train_length": 16,
        "length": 32,
    }
    assert (row["protocol"], row["status"], row["reason"]) == ("same_targets", "ok", None)
    assert (row["scored_chars"], row["largest_id"]) == (48, 31.0)
    assert row["seconds"] > 0


def test_same_targets_gives_the_known_curve() -> None:
    """The last 8 of T characters have T − 7 … T characters of context."""
    rows = by_length(rows_of(evaluation_of(KnownLoss(curve), cycle(2000), lengths=LENGTHS, strategies=["none"])))
    assert list(rows) == LENGTHS
    expected = {length: float(np.mean([curve(n) for n in range(length - 7, length + 1)])) for length in LENGTHS}
    for length, row in rows.items():
        assert row["loss"] == pytest.approx(expected[length], abs=1e-5)
        assert row["gain"] == pytest.approx(expected[TRAIN_LENGTH] - expected[length], abs=1e-5)
        assert row["gain_low"] == pytest.approx(row["gain"], abs=1e-5)
        assert row["gain_high"] == pytest.approx(row["gain"], abs=1e-5)
        assert row["scored_chars"] == 48
    assert rows[8]["gain"] < 0 < rows[32]["gain"]
    assert rows[16]["gain"] == 0


def test_non_overlapping_gives_the_known_curve() -> None:
    """200 held-out characters: whole windows, and a shorter rest."""
    model = KnownLoss(curve)
    rows = by_length(
        rows_of(evaluation_of(model, cycle(2000), lengths=LENGTHS, strategies=["none"], protocols=["non_overlapping"]))
    )
    costs = {length: [curve(place % length + 1) for place in range(200)] for length in LENGTHS}
    for length, row in rows.items():
        assert row["loss"] == pytest.approx(np.mean(costs[length]), abs=1e-5)
        assert row["gain"] == pytest.approx(np.mean(costs[16]) - np.mean(costs[length]), abs=1e-5)
        assert row["scored_chars"] == 200


@pytest.mark.parametrize("stride", [1, 7, 64])
def test_sliding_gives_the_known_curve(stride: int) -> None:
    """The first T of 200 held-out characters have 1 … T characters of context, the others a place at the end."""
    settings: dict[str, Any] = {"strategies": ["none"], "protocols": ["sliding"], "stride": stride}
    rows = by_length(rows_of(evaluation_of(KnownLoss(curve), cycle(2000), lengths=LENGTHS, **settings)))
    costs = {}
    for length in LENGTHS:
        step = min(stride, length)
        steps = [min(step, 200 - start) for start in range(length, 200, step)]
        contexts = [*range(1, length + 1), *(n for size in steps for n in range(length - size + 1, length + 1))]
        costs[length] = np.array([curve(context) for context in contexts])
    for length, row in rows.items():
        assert row["scored_chars"] == 200
        assert row["largest_id"] == length - 1
        assert row["loss"] == pytest.approx(costs[length].mean(), abs=1e-5)
        assert row["gain"] == pytest.approx(costs[16].mean() - costs[length].mean(), abs=1e-5)


def test_three_protocols_in_one_table_disagree_as_they_should() -> None:
    """A model that uses 24 characters and gets slowly worse beyond: from 16 to 64 the last characters lose 0.2, cut
    windows claim a gain of 0.25 and more, and steps of one character tell nearly the truth."""
    names = ["same_targets", "non_overlapping", "sliding"]
    settings: dict[str, Any] = {"lengths": [16, 64], "strategies": ["none"], "protocols": names, "stride": 1}
    rows = rows_of(evaluation_of(KnownLoss(curve), cycle(2000), **settings))
    assert [(row["protocol"], row["length"]) for row in rows] == [(name, n) for name in names for n in (16, 64)]
    assert [row["scored_chars"] for row in rows] == [48, 48, 200, 200, 200, 200]
    assert [row["largest_id"] for row in rows] == [15, 63] * 3
    gains = {row["protocol"]: row["gain"] for row in rows if row["length"] == 64}
    assert gains["same_targets"] == pytest.approx(
        np.mean([curve(n) for n in range(9, 17)]) - np.mean([curve(n) for n in range(57, 65)]), abs=1e-5
    )
    assert gains["same_targets"] < 0
    assert gains["non_overlapping"] > 0.25
    assert gains["sliding"] < gains["same_targets"] + 0.1


def test_observations_of_sliding_are_the_same_pieces_of_text_at_every_length_and_stride() -> None:
    settings: dict[str, Any] = {"lengths": [16, 48], "strategies": ["none"], "protocols": ["sliding"]}
    for stride in (1, 7, 64):
        evaluation = evaluation_of(model_of("rope"), noise(2000), "rope", stride=stride, **settings)
        tables = evaluation.run(quietly)
        short, long = ([row for row in tables.windows if row["length"] == length] for length in (16, 48))
        assert [row["scored_chars"] for row in short] == [row["scored_chars"] for row in long] == [8] * 25
        difference = np.array([a["loss"] - b["loss"] for a, b in zip(short, long, strict=True)])
        found = over_windows(difference * 8, np.full(25, 8))
        row = by_length(tables.extrapolation)[48]
        assert (row["gain"], row["gain_low"], row["gain_high"]) == pytest.approx(found, rel=1e-6)
        assert sum(part["scored_chars"] for part in tables.positions if part["length"] == 48) == 200


def test_losses_by_position_are_the_curve_itself() -> None:
    settings: dict[str, Any] = {
        "lengths": [32],
        "strategies": ["none"],
        "protocols": ["same_targets", "non_overlapping"],
    }
    tables = evaluation_of(KnownLoss(curve), cycle(2000), **settings).run(quietly)
    places = {
        protocol: [row for row in tables.positions if row["protocol"] == protocol] for protocol in settings["protocols"]
    }
    assert [row["position"] for row in places["same_targets"]] == list(range(24, 32))
    assert {row["scored_chars"] for row in places["same_targets"]} == {6}
    assert [row["position"] for row in places["non_overlapping"]] == list(range(32))
    # 200 = 6 · 32 + 8: the first 8 places are in the rest too
    assert [row["scored_chars"] for row in places["non_overlapping"]] == [7] * 8 + [6] * 24
    for row in tables.positions:
        assert row["loss"] == pytest.approx(curve(row["position"] + 1), rel=1e-5)


def test_units() -> None:
    for row in rows_of(evaluation_of(KnownLoss(curve), cycle(2000), lengths=LENGTHS, strategies=["none"])):
        assert row["bits_per_char"] == pytest.approx(row["loss"] / math.log(2), rel=1e-12)
        assert row["perplexity"] == pytest.approx(math.exp(row["loss"]), rel=1e-12)


def test_perplexity_that_overflows_is_missing() -> None:
    [row] = rows_of(evaluation_of(KnownLoss(lambda seen: 800.0), cycle(2000), lengths=[32], strategies=["none"]))
    assert row["loss"] == pytest.approx(800)
    assert row["status"] == "ok"
    assert row["perplexity"] is None
    assert perplexity(709.0) == pytest.approx(math.exp(709))
    assert perplexity(710.0) is None


def test_tables_agree_with_each_other() -> None:
    settings: dict[str, Any] = {"lengths": LENGTHS, "protocols": ["same_targets", "non_overlapping", "sliding"]}
    tables = evaluation_of(model_of("rope"), noise(2000), "rope", **settings).run(quietly)
    for row in tables.extrapolation:
        for detail in (tables.windows, tables.positions):
            parts = [
                part for part in detail if all(part[key] == row[key] for key in ("strategy", "length", "protocol"))
            ]
            if row["status"] != "ok":
                assert parts == []
                continue
            assert sum(part["scored_chars"] for part in parts) == row["scored_chars"]
            total = sum(part["loss"] * part["scored_chars"] for part in parts)
            assert total / row["scored_chars"] == pytest.approx(row["loss"], rel=1e-9)


# --- intervals ---


def test_gain_is_paired_by_the_windows_of_the_same_characters() -> None:
    tables = evaluation_of(model_of("rope"), noise(2000), "rope", lengths=[16, 64], strategies=["none"]).run(quietly)
    rows = by_length(tables.extrapolation)
    short, long = (np.array([row["loss"] for row in tables.windows if row["length"] == length]) for length in (16, 64))
    found = over_windows((short - long) * 8, np.full(6, 8))
    assert (rows[64]["gain"], rows[64]["gain_low"], rows[64]["gain_high"]) == pytest.approx(found, rel=1e-9)
    assert rows[64]["gain"] == pytest.approx(rows[16]["loss"] - rows[64]["loss"], rel=1e-9)
    alone = over_windows(long * 8, np.full(6, 8))
    assert (rows[64]["loss"], rows[64]["loss_low"], rows[64]["loss_high"]) == pytest.approx(alone, rel=1e-9)


def test_gain_of_windows_of_different_sizes_is_paired_by_the_larger() -> None:
    """Three windows of 64 and a rest of 8 characters, against the same characters in windows of 16."""
    settings: dict[str, Any] = {"lengths": [16, 64], "strategies": ["none"], "protocols": ["non_overlapping"]}
    tables = evaluation_of(model_of("rope"), noise(2000), "rope", **settings).run(quietly)
    short, long = ([row for row in tables.windows if row["length"] == length] for length in (16, 64))
    sums = [sum(part["loss"] * part["scored_chars"] for part in short[4 * i : 4 * i + 4]) for i in range(4)]
    sizes = np.array([64, 64, 64, 8])
    assert [row["scored_chars"] for row in long] == sizes.tolist()
    found = over_windows(np.array(sums) - np.array([row["loss"] for row in long]) * sizes, sizes)
    row = by_length(tables.extrapolation)[64]
    assert (row["gain"], row["gain_low"], row["gain_high"]) == pytest.approx(found, rel=1e-6)


def test_one_window_has_a_loss_and_no_interval() -> None:
    [row] = rows_of(evaluation_of(model_of("none"), noise(2000), lengths=[32], windows=1, strategies=["none"]))
    assert row["loss"] is not None
    assert row["gain"] is not None
    assert [row[key] for key in ("loss_low", "loss_high", "gain_low", "gain_high")] == [None] * 4


# --- independence ---


def test_a_length_is_measured_the_same_alone_and_among_others_in_any_order() -> None:
    protocols = ["same_targets", "non_overlapping", "sliding"]
    settings: dict[str, Any] = {"strategies": ["none", "interpolate"], "protocols": protocols, "stride": 7}

    def measured(lengths: tuple[int, ...]) -> dict[tuple[Any, ...], list[float]]:
        evaluation = evaluation_of(model_of("rope"), noise(2000), "rope", **settings)
        evaluation.settings = evaluation.settings.model_copy(update={"lengths": lengths})
        return {
            (row["length"], row["strategy"], row["protocol"]): [
                row["loss"],
                row["gain"],
                row["loss_low"],
                row["gain_high"],
            ]
            for row in rows_of(evaluation)
        }

    together = measured((64, 16, 48, 20))
    assert len(together) == 24
    alone: dict[tuple[Any, ...], list[float]] = {}
    for length in (16, 20, 48, 64):
        alone.update(measured((length,)))
    assert list(alone) != list(together)
    for key, numbers in together.items():
        assert numbers == pytest.approx(alone[key], abs=1e-6)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_batch_size_of_evaluation_changes_no_row(size: int) -> None:
    settings: dict[str, Any] = {"lengths": [16, 48], "protocols": ["same_targets", "non_overlapping", "sliding"]}
    usual = rows_of(evaluation_of(model_of("t5"), noise(2000), "t5", batch_size=8, **settings))
    other = rows_of(evaluation_of(model_of("t5"), noise(2000), "t5", batch_size=size, **settings))
    for one, two in zip(usual, other, strict=True):
        for key in ("loss", "loss_low", "loss_high", "gain", "gain_low", "gain_high", "bits_per_char"):
            assert one[key] == (None if two[key] is None else pytest.approx(two[key], abs=1e-5))


@pytest.mark.parametrize("encoding", ["learned", "rope", "sinusoidal"])
def test_a_strategy_changes_nothing_up_to_the_training_length(encoding: str) -> None:
    names = ["none", "repeat_last", "interpolate", "wrap", "rerope"]
    tables = evaluation_of(model_of(encoding), noise(2000), encoding, lengths=[8, 15, 16], strategies=names).run(
        quietly
    )
    assert len(tables.extrapolation) == 15
    plain = {row["length"]: row for row in tables.extrapolation if row["strategy"] == "none"}
    for row in tables.extrapolation:
        assert {**row, "strategy": "none"} == plain[row["length"]]


@pytest.mark.parametrize("name", ["layered", "mix"])
def test_ids_that_no_part_looks_at_are_not_the_largest(name: str) -> None:
    """none and fox read no ids: all that reads some is kept within those of training."""
    block = {
        "layered": {"name": "layered", "pattern": ["rope", "none"]},
        "mix": {"name": "mix", "parts": ["rope", "fox"]},
    }
    model = model_of(block[name])
    rows = evaluation_of(model, noise(2000), block[name], lengths=[16, 61], strategies=["none", "interpolate"]).run(
        quietly
    )
    largest = {(row["strategy"], row["length"]): row["largest_id"] for row in rows.extrapolation}
    assert largest == {("none", 16): 15, ("none", 61): 60, ("interpolate", 16): 15, ("interpolate", 61): 15}


def test_a_learned_table_is_stretched_to_any_length() -> None:
    lengths = [16, 17, 23, 31, 47, 61]
    evaluation = evaluation_of(
        model_of("learned"), noise(2000), "learned", lengths=lengths, strategies=["none", "interpolate"]
    )
    rows = rows_of(evaluation)
    stretched = by_length([row for row in rows if row["strategy"] == "interpolate"])
    assert {row["status"] for row in stretched.values()} == {"ok"}
    assert {row["largest_id"] for row in stretched.values()} == {15.0}
    assert stretched[16]["loss"] == by_length(rows[: len(lengths)])[16]["loss"]
