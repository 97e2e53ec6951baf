"""A task through the commands: trained, evaluated and compared like a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import TINY, info, only_run, pe, signals_at, training
from small_runs import read_csv, without_processes_and_pictures

COPY = "{task: copy, max_length: 4}"
TASK_SETS = [part for key, value in TINY.items() if key != "training.length" for part in ("--set", f"{key}={value}")]
"""The training length follows from the task."""


def trained_on(folder: Path, data: str, *arguments: object) -> list[object]:
    return ["train", "--data", data, "--out", folder, "--threads", 1, *arguments, *TASK_SETS]


def test_a_run_answers_and_is_measured_by_length(tmp_path: Path) -> None:
    done = pe(*trained_on(tmp_path, COPY, "--encoding", "learned", "--json"))
    assert done.code == 0, done.err
    assert (done.json["data"], done.json["alphabet"]) == ("task copy", ">_abcdefghij")
    done = pe("extrapolate", "--out", tmp_path, "--strategy", "none,interpolate", "--json", "--threads", 1)
    assert done.code == 0, done.err
    rows = {(row["strategy"], row["length"]): row for row in done.json["rows"]}
    assert [length for strategy, length in rows if strategy == "none"] == [2, 4, 8, 12, 16]
    assert {row["protocol"] for row in rows.values()} == {"instances"}
    assert {row["train_length"] for row in rows.values()} == {4}
    inside, beyond = rows["none", 4], rows["interpolate", 16]
    assert (inside["status"], rows["none", 8]["status"], beyond["status"]) == ("ok", "undefined", "ok")
    assert (inside["scored_chars"], inside["largest_id"]) == (256 * 4, 7)
    assert beyond["largest_id"] == 7
    assert 0 <= inside["exact_match_low"] <= inside["exact_match"] <= inside["exact_match_high"] <= 1
    assert inside["exact_match"] <= inside["accuracy"]
    assert inside["gain"] is None
    run = only_run(tmp_path)
    windows = [row for row in read_csv(run / "windows.csv") if (row["strategy"], row["length"]) == ("none", "4")]
    assert sum(int(row["right_chars"]) for row in windows) / 1024 == pytest.approx(inside["accuracy"])
    whole = [row["right_chars"] == row["scored_chars"] for row in windows]
    assert sum(whole) / 256 == pytest.approx(inside["exact_match"])
    assert "exact match" in (run / "extrapolation.md").read_text(encoding="utf-8")
    assert (run / "extrapolation.png").is_file()
    alone = pe("extrapolate", "--out", tmp_path, "--lengths", "16", "--strategy", "interpolate", "--json")
    assert {key: value for key, value in alone.json["rows"][0].items() if key != "seconds"} == pytest.approx(
        {key: value for key, value in beyond.items() if key != "seconds"}, abs=1e-6
    )


def test_what_is_said_of_a_text_is_said_of_a_task(tmp_path: Path) -> None:
    """Which strategies `all` leaves out, whose ids were drawn; attention is measured in windows of a text alone."""
    drawn = ["--set", "positions.name=randomized", "--set", "positions.max_position=64"]
    assert pe(*trained_on(tmp_path, COPY, "--encoding", "alibi", *drawn)).code == 0
    done = pe("extrapolate", "--out", tmp_path, "--strategy", "all", "--lengths", "4,8", "--threads", 1)
    assert done.code == 0, done.err
    assert "strategies without meaning for alibi are left out: cubic" in done.out
    assert "randomized: losses are means over 3 draws from 64 ids" in done.out
    done = pe("extrapolate", "--out", tmp_path, "--attention")
    assert (done.code, done.out) == (2, "")
    assert "--attention: it is measured in windows of a text, and task copy has none" in done.err


def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    arguments = trained_on(tmp_path / "whole", "{task: addition, max_length: 2}", "--quiet")
    assert pe(*arguments).code == 0
    parts = [tmp_path / "parts" if part == tmp_path / "whole" else part for part in arguments]
    with signals_at(17, 2):
        assert pe(*parts).code == 130
    assert pe(*parts, "--resume").code == 0
    whole, resumed = (info(only_run(tmp_path / name)) for name in ("whole", "parts"))
    assert whole["weight_sha256"] == resumed["weight_sha256"]
    assert whole["data_digest"] == resumed["data_digest"]


def test_a_comparison_has_exact_matches_over_seeds_on_equal_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Student's t of two values a and b is 12.706, and the interval reaches 12.706 |a − b| / 2 from their mean."""
    without_processes_and_pictures(monkeypatch)
    block = {"data": {"task": "parity", "max_length": 4}, "evaluation": {"windows": 20, "strategies": ["none"]}}
    for name in ("none", "rope"):
        (tmp_path / f"{name}.yaml").write_text(json.dumps({**block, "encoding": name}), encoding="utf-8")
    configs = [tmp_path / "none.yaml", tmp_path / "rope.yaml"]
    done = pe("compare", *configs, "--out", tmp_path, "--seeds", 2, "--threads", 1, "--json", *TASK_SETS)
    assert done.code == 0, done.err
    digests = {(run["seed"], run["data_digest"]) for run in done.json["runs"]}
    assert len(digests) == 2
    shares: dict[tuple[str, int], list[float]] = {}
    for run in done.json["runs"]:
        windows = read_csv(Path(run["directory"]) / "windows.csv")
        for length in (2, 4, 8, 12, 16):
            exact = [row["right_chars"] == row["scored_chars"] for row in windows if row["length"] == str(length)]
            assert len(exact) == 20
            shares.setdefault((run["name"], length), []).append(sum(exact) / 20)
    assert len({share for pair in shares.values() for share in pair}) > 3
    summary = {(row["name"], row["length"]): row for row in done.json["summary"]}
    assert set(summary) == set(shares)
    for key, (one, two) in shares.items():
        mean, half = (one + two) / 2, 12.706 * abs(one - two) / 2
        expected = [mean, max(0, mean - half), min(1, mean + half)]
        found = [summary[key][f"exact_match{end}"] for end in ("", "_low", "_high")]
        assert found == pytest.approx(expected, abs=1e-3)
    table = (tmp_path / "none-rope" / "comparison.md").read_text(encoding="utf-8")
    assert "Exact match by length" in table


def test_a_run_that_is_asked_other_data_counts_its_training_as_that_data_counts(tmp_path: Path) -> None:
    """A copy of n letters feeds 2 n characters: windows of 16 are n = 8. Of a text truncate gains nothing."""
    text = tmp_path / "text.txt"
    text.write_text(">_abcdefghij" * 100, encoding="utf-8")
    short = ("--set", "training.length=16")
    assert pe(*trained_on(tmp_path / "text", str(text), *short, "--quiet")).code == 0
    asked = ("--strategy", "none,truncate", "--json")
    done = pe("extrapolate", "--out", tmp_path / "text", "--data", "task:copy", "--lengths", "4,8,9", *asked)
    assert done.code == 0, done.err
    rows = {(row["strategy"], row["length"]): row for row in done.json["rows"]}
    assert {row["train_length"] for row in rows.values()} == {8}
    assert rows["truncate", 8]["loss"] == rows["none", 8]["loss"]
    assert rows["truncate", 9]["loss"] != rows["none", 9]["loss"]
    assert pe(*trained_on(tmp_path / "task", COPY, "--encoding", "rope", "--quiet")).code == 0
    done = pe("extrapolate", "--out", tmp_path / "task", "--data", text, "--lengths", "8,32", *asked)
    assert done.code == 0, done.err
    rows = {(row["strategy"], row["length"]): row for row in done.json["rows"]}
    assert {row["train_length"] for row in rows.values()} == {8}, "max_length 4 fills windows of 8 characters"
    assert rows["truncate", 32]["gain"] == 0


def test_a_run_of_a_text_is_asked_for_a_key(tmp_path: Path) -> None:
    assert pe(*training(tmp_path, "--quiet", training__length=32)).code == 0
    words = '{task: passkey, statement: "the cat ", filler: "sat on a mat ", key_length: 2}'
    done = pe("extrapolate", "--out", tmp_path, "--data", words, "--lengths", "32,64", "--strategy", "none", "--json")
    assert "the run does not know the characters '.'" in done.err
    words = words.replace("key_length", 'ending: " ", key_length')
    done = pe("extrapolate", "--out", tmp_path, "--data", words, "--lengths", "32,64", "--strategy", "none", "--json")
    assert done.code == 0, done.err
    for row in done.json["rows"]:
        assert (row["protocol"], row["status"], row["train_length"]) == ("instances", "ok", 32)
        assert row["largest_id"] == row["length"] - 1
    run = only_run(tmp_path)
    windows = read_csv(run / "windows.csv")
    for row in done.json["rows"]:
        margins = [float(window["margin"]) for window in windows if window["length"] == str(row["length"])]
        assert row["margin"] == pytest.approx(sum(margins) / len(margins))
        assert min(margins) < row["margin_low"] < row["margin"] < row["margin_high"] < max(margins)
    assert {window["depth"] for window in windows} == {"0.0", "0.25", "0.5", "0.75", "1.0"}
    assert "Exact match by depth and length (none)" in (run / "extrapolation.md").read_text(encoding="utf-8")
    done = pe("extrapolate", "--out", tmp_path, "--data", words, "--lengths", "32", "--protocol", "sliding")
    assert "sliding: task passkey is a task, which has the protocol instances" in done.err
    done = pe("extrapolate", "--out", tmp_path, "--data", "task:copy", "--lengths", "32", "--strategy", "none")
    assert "the run does not know the characters '>'" in done.err


def test_a_task_whose_every_instance_is_longer_than_the_windows_of_training(tmp_path: Path) -> None:
    """It has no trained length: no line in the picture, and a note."""
    assert pe(*training(tmp_path, "--quiet", training__length=16)).code == 0
    words = '{task: passkey, statement: "the cat ", ending: " ", filler: "sat on a mat ", key_length: 5}'
    protocols = ("--set", "evaluation.scored=8", "--strategy", "none")
    done = pe("extrapolate", "--out", tmp_path, "--data", words, "--lengths", "12,32,64", *protocols)
    assert done.code == 0, done.err
    assert "no instance is as short as the windows of training, 16" in done.out
    [warning] = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert warning.startswith("warning: instances: skipping 12: ")
    assert {row["train_length"] for row in read_csv(only_run(tmp_path) / "extrapolation.csv")} == {"0"}
    assert (only_run(tmp_path) / "extrapolation.png").is_file()
