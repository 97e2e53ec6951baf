"""`pe extrapolate`: which run, which lengths, on which text, and what is left when something is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Finished, only_run, pe
from small_runs import config_file, read_csv, refused, stub, text_file

from pe_cli import plots, text_evaluation
from pe_cli.errors import RunError
from pe_cli.evaluation import COLUMNS, POSITION_COLUMNS, WINDOW_COLUMNS
from pe_cli.runs import RUN_FILES


def trained(folder: Path, **changes: Any) -> Path:
    """A run of a moment under folder/results."""
    path = config_file(folder / "small.yaml", **changes)
    done = pe("train", path, "--out", folder / "results", "--threads", 1, "--quiet")
    assert done.code == 0, done
    return only_run(folder / "results")


@pytest.fixture(scope="module")
def rope(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("rope"), encoding="rope")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("learned"), encoding="learned")


@pytest.fixture(autouse=True)
def unseen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take longer than all the rest: a mark for each, but for tests of pictures."""
    if "picture" not in request.node.name:
        monkeypatch.setattr(plots, "plot_extrapolation", stub)


def extrapolate(run: Path, *arguments: object) -> Finished:
    return pe("extrapolate", run, "--threads", 1, *arguments)


def rows_of(run: Path, *arguments: object) -> list[dict[str, Any]]:
    done = extrapolate(run, *arguments, "--json")
    assert done.code == 0, done
    assert done.json["run"] == run.name
    return list(done.json["rows"])


def lengths_of(rows: list[dict[str, Any]]) -> list[int]:
    return [row["length"] for row in rows]


# --- which run ---


def test_a_run_is_named_by_its_path_by_its_name_or_not_at_all(rope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = rope.parent.parent
    monkeypatch.chdir(out.parent)
    losses = set()
    for run in ([rope], [rope / "run.json"], [rope.name], [Path("results/runs") / rope.name], []):
        done = pe("extrapolate", *run, "--out", out, "--threads", 1, "--lengths", "32", "--json")
        assert done.code == 0, done
        losses.add(done.json["rows"][0]["loss"])
        assert done.json["run"] == rope.name
        assert (f"run: {rope}" in done.err) == (run == [])
    assert len(losses) == 1


def test_what_is_no_run_is_refused(rope: Path, tmp_path: Path) -> None:
    out = rope.parent.parent
    refused(pe("extrapolate", rope.name[:6], "--out", out), "is not there", f"did you mean '{rope.name}'")
    refused(pe("extrapolate", tmp_path), str(tmp_path), "is not a run, it has no run.json")
    refused(pe("extrapolate", "--out", tmp_path), "there is no", "latest", "pe train")


def test_a_damaged_run_is_refused(rope: Path, tmp_path: Path) -> None:
    def broken(name: str, content: bytes) -> Finished:
        run = tmp_path / f"{name}-{len(content)}" / "runs" / "x-0123456789-s1"
        shutil.copytree(rope, run)
        (run / name).write_bytes(content)
        return extrapolate(run)

    weights = (rope / "model.safetensors").read_bytes()
    other = bytes([*weights[:-1], weights[-1] ^ 1])
    for content in (b"", weights[:100], weights[:-8], other, b"\x80\x04K\x01."):
        refused(broken("model.safetensors", content), "model.safetensors", "train it again with --force")
    refused(broken("run.json", b'{"status": '), "run.json", "damaged")
    refused(broken("run.json", b'{"status": "done"}'), "run.json")
    refused(broken("config.yaml", b"encoding: [rope\n"), "config.yaml")


def test_a_run_that_diverged_is_refused(tmp_path: Path) -> None:
    wild = {"learning_rate": 1000.0, "optimizer": "adamw", "steps": 30}
    path = config_file(tmp_path / "wild.yaml", encoding="rope", training=wild)
    assert pe("train", path, "--out", tmp_path / "results", "--threads", 1).code == 1
    refused(extrapolate(only_run(tmp_path / "results")), "diverged")


# --- which lengths and strategies ---


def test_lengths_are_those_of_the_config_unless_said(rope: Path) -> None:
    assert lengths_of(rows_of(rope)) == [16, 32, 64]


def test_lengths_double_up_to_the_one_asked_for(rope: Path) -> None:
    assert lengths_of(rows_of(rope, "--max-len", "100")) == [16, 32, 64, 100]
    assert lengths_of(rows_of(rope, "--max-len", "16")) == [16]
    rows = rows_of(rope, "--max-len", "300")
    assert lengths_of(rows) == [16, 32, 64, 128, 256, 300]
    assert [row["status"] for row in rows] == ["ok"] * 4 + ["skipped"] * 2


def test_lengths_are_sorted_and_each_is_taken_once(rope: Path) -> None:
    assert lengths_of(rows_of(rope, "--lengths", "128,64,64")) == [64, 128]
    assert lengths_of(rows_of(rope, "--lengths", "128", "--lengths", "32, 64")) == [32, 64, 128]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--max-len", "4096x"], ["--max-len", "'4096x'", "whole number"]),
        (["--max-len", "-4"], ["--max-len", "-4"]),
        (["--max-len", "15"], ["--max-len 15", "training length 16", "--lengths"]),
        (["--max-len", "64", "--lengths", "32"], ["--max-len", "--lengths", "give one of them"]),
        (["--lengths", "64,,128"], ["evaluation.lengths", "64,,128"]),
        (["--lengths", "64,x"], ["evaluation.lengths", "'x'"]),
        (["--lengths", "16,2.5"], ["evaluation.lengths", "'2.5'"]),
        (["--lengths", "1"], ["evaluation.lengths", "[1]"]),
        (["--lengths", "0"], ["evaluation.lengths", "[0]"]),
        (["--strategy", "interpolat"], ["'interpolat'", "did you mean 'interpolate'?"]),
        (["--strategy", "magic"], ["'magic'", "known: ", "repeat_last"]),
        (["--set", "training.steps=1"], ["training.steps", "evaluation.KEY only"]),
        (["--set", "evaluation.window=3"], ["evaluation.window", "did you mean 'windows'?"]),
        (["--set", "evaluation.windows=0"], ["evaluation.windows", "0"]),
        (["--set", "evaluation.windows"], ["--set evaluation.windows", "KEY=VALUE"]),
        (["--set", "evaluation.scored=17"], ["evaluation.scored", "16", "17"]),
        (["--set", "evaluation.protocols=slides"], ["'slides'", "did you mean 'sliding'?"]),
        (["--device", "potato"], ["'potato'"]),
    ],
    ids=" ".join,
)
def test_what_cannot_be_asked_for_is_refused(arguments: list[str], parts: list[str], rope: Path) -> None:
    before = (rope / "run.json").stat().st_mtime_ns
    refused(extrapolate(rope, *arguments), *parts)
    assert (rope / "run.json").stat().st_mtime_ns == before


def test_strategies_are_named_with_any_case_and_dash(rope: Path) -> None:
    rows = rows_of(rope, "--lengths", "32", "--strategy", "Repeat-Last,INTERPOLATE", "--strategy", "none")
    assert [(row["strategy"], row["status"]) for row in rows] == [
        ("repeat_last", "refused"),
        ("interpolate", "ok"),
        ("none", "ok"),
    ]
    assert "sees only distances" in rows[0]["reason"]


def test_a_learned_table_is_undefined_beyond_its_rows_unless_a_strategy_is_named(learned: Path) -> None:
    done = extrapolate(learned, "--max-len", "128", "--strategy", "none,repeat_last", "--json")
    assert done.code == 0
    found = {(row["strategy"], row["length"]): row["status"] for row in done.json["rows"]}
    assert {key[1]: status for key, status in found.items() if key[0] == "none"} == {
        16: "ok",
        32: "undefined",
        64: "undefined",
        128: "undefined",
    }
    assert {status for key, status in found.items() if key[0] == "repeat_last"} == {"ok"}


def test_keys_of_the_evaluation_are_set_on_the_command_line(rope: Path) -> None:
    settings = ["evaluation.windows=3", "evaluation.scored=4", "evaluation.protocols=non-overlapping,same_targets"]
    rows = rows_of(rope, "--lengths", "32", *(part for value in settings for part in ("--set", value)))
    assert {row["protocol"]: row["scored_chars"] for row in rows} == {"non_overlapping": 250, "same_targets": 12}


def test_protocols_stand_in_one_table_and_their_cost_is_said_before(rope: Path) -> None:
    """250 held-out characters; 6 windows of same_targets; sliding by 64 from 32 on: 31 more steps of 7."""
    asked = ["--lengths", "32", "--protocol", "same-targets,sliding", "--protocol", "non_overlapping"]
    done = extrapolate(rope, *asked, "--set", "evaluation.stride=7", "--set", "evaluation.strategies=none")
    assert done.code == 0, done
    fed = {"same_targets": 6 * (16 + 32), "sliding": (1 + 34) * 16 + (1 + 32) * 32, "non_overlapping": 500}
    words = ", ".join(f"{name} feeds {chars:,} characters" for name, chars in fed.items())
    assert f"evaluating: {words}" in done.err
    lines = [line.split() for line in done.out.splitlines() if line.startswith("none ")]
    assert [(line[1], line[2], line[-3], line[-2]) for line in lines] == [
        ("same_targets", "32", "48", "31"),
        ("sliding", "32", "250", "31"),
        ("non_overlapping", "32", "250", "31"),
    ]
    assert (rope / "positions.png").is_file()
    assert {path.name for path in rope.iterdir()} <= {*RUN_FILES}
    assert extrapolate(rope, "--lengths", "32", "--strategy", "none").code == 0
    assert not (rope / "positions.png").exists(), "same_targets has the ends of windows alone"
    refused(extrapolate(rope, "--protocol", "same_target"), "'same_target'", "did you mean 'same_targets'?")


def test_where_characters_look_is_measured_on_request(rope: Path) -> None:
    """One layer of two heads; 6 windows of 8 characters; heads of 8 columns have waves of 6, 63, 628 and 6283."""
    assert not (rope / "attention.csv").exists()
    asked = ["--lengths", "32,64", "--strategy", "none,interpolate", "--attention"]
    done = extrapolate(rope, *asked)
    assert done.code == 0, done
    assert f"attention feeds {6 * (16 + 2 * (32 + 64)):,} characters" in done.err
    rows = read_csv(rope / "attention.csv")
    keys = [(row["strategy"], row["length"], row["layer"], row["head"]) for row in rows]
    assert keys == [(s, n, "0", h) for s in ("none", "interpolate") for n in ("16", "32", "64") for h in ("0", "1")]
    assert {row["queries"] for row in rows} == {"48"}
    assert all(0 < float(row["relative_entropy"]) <= 1 for row in rows)
    assert "3 of 4 waves never completed a turn in training" in done.out
    assert str(rope / "attention.csv") in done.out
    assert (rope / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert (rope / "attention.png").stat().st_size > 20_000
    assert {path.name for path in rope.iterdir()} <= {*RUN_FILES}, "a new training removes all that is of the old one"
    again = extrapolate(rope, *asked, "--json").json["attention"]
    assert [float(row["entropy"]) for row in rows] == [row["entropy"] for row in again]
    assert extrapolate(rope, "--lengths", "32", "--strategy", "none").code == 0
    assert not (rope / "attention.csv").exists(), "tables and pictures in a run are of one evaluation"
    assert not (rope / "attention.png").exists()


# --- laws ---


def test_a_length_has_the_same_loss_alone_and_among_others(rope: Path) -> None:
    together = rows_of(rope, "--lengths", "64,16,20,100")
    for row in together:
        [alone] = rows_of(rope, "--lengths", row["length"])
        for key in ("loss", "loss_low", "loss_high", "gain", "gain_low", "gain_high"):
            assert alone[key] == pytest.approx(row[key], abs=1e-6)


def test_the_batch_size_changes_no_metric(rope: Path) -> None:
    found = [
        [row["loss"] for row in rows_of(rope, "--set", f"evaluation.batch_size={size}")] for size in (1, 3, 8, 1000)
    ]
    for losses in found:
        assert losses == pytest.approx(found[0], abs=1e-5)


def test_every_length_scores_as_many_characters(rope: Path) -> None:
    assert {row["scored_chars"] for row in rows_of(rope, "--max-len", "128")} == {48}


# --- files ---


def test_files_hold_what_was_printed_and_the_run_is_left_alone(rope: Path) -> None:
    kept = ["run.json", "config.yaml", "model.safetensors", "state.safetensors", "training.csv", "validation.csv"]
    before = {name: (rope / name).stat().st_mtime_ns for name in kept}
    done = extrapolate(rope, "--max-len", "300", "--strategy", "none,repeat_last")
    again = extrapolate(rope, "--max-len", "300", "--strategy", "none,repeat_last", "--json")
    assert {name: (rope / name).stat().st_mtime_ns for name in kept} == before
    rows = read_csv(rope / "extrapolation.csv")
    assert (rope / "extrapolation.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert (rope / "windows.csv").read_text().splitlines()[0] == ",".join(WINDOW_COLUMNS)
    assert (rope / "positions.csv").read_text().splitlines()[0] == ",".join(POSITION_COLUMNS)
    assert len(rows) == len(again.json["rows"]) == 12
    for written, printed in zip(rows, again.json["rows"], strict=True):
        assert written == {key: "" if value is None else str(value) for key, value in printed.items()}
    markdown = (rope / "extrapolation.md").read_text(encoding="utf-8")
    for row in again.json["rows"]:
        if row["loss"] is not None:
            assert f"{row['loss']:.4f}" in markdown
            assert f"{row['loss']:.4f}" in done.out
    assert str(rope / "extrapolation.md") in done.out
    assert str(rope / "extrapolation.png") in done.out
    assert sorted(path.name for path in rope.iterdir() if path.name.startswith(".")) == []


def test_windows_and_positions_are_of_the_same_characters(rope: Path) -> None:
    [row] = rows_of(rope, "--lengths", "64")
    windows, positions = (read_csv(rope / name) for name in ("windows.csv", "positions.csv"))
    assert [int(entry["window"]) for entry in windows] == list(range(6))
    assert [int(entry["position"]) for entry in positions] == list(range(56, 64))
    for entries in (windows, positions):
        assert np.mean([float(entry["loss"]) for entry in entries]) == pytest.approx(row["loss"], rel=1e-9)


# --- output ---


def test_a_redirected_table_is_complete_at_any_width(rope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = extrapolate(rope, "--strategy", "none,repeat_last")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    narrow = extrapolate(rope, "--strategy", "none,repeat_last")
    assert narrow.out == wide.out
    assert "\x1b" not in narrow.out + narrow.err
    headings = narrow.out.splitlines()[1].split()
    assert headings[0] == "strategy"
    assert headings[-1] == "status"


def test_fewer_blocks_than_asked_for_are_said(rope: Path) -> None:
    done = extrapolate(rope, "--set", "evaluation.windows=100")
    assert "the second half of the held-out text holds 15 blocks of 8 scored characters, fewer than the 100" in done.out


def test_lengths_that_do_not_fit_are_said_before_and_in_the_table(rope: Path) -> None:
    done = extrapolate(rope, "--max-len", "300")
    assert done.code == 0
    first = done.err.splitlines()[0]
    assert first.startswith("warning: same_targets: skipping 256, 300: a window of 256 characters")
    assert first.endswith("there are 133")
    assert "none: skipped at 256, 300: a window of 256 characters" in done.out


def test_nothing_to_evaluate_is_bad_input_with_its_rows(rope: Path) -> None:
    done = extrapolate(rope, "--lengths", "1000,2000", "--json")
    assert done.code == 2
    assert [(row["length"], row["status"], row["loss"]) for row in done.json["rows"]] == [
        (1000, "skipped", None),
        (2000, "skipped", None),
    ]
    last = done.err.splitlines()[-1]
    assert last.startswith("error: no length could be evaluated: a window of 1000")
    assert "133" in last
    assert extrapolate(rope, "--lengths", "1000").code == 2


@pytest.mark.parametrize("json_wanted", [True, False])
def test_a_picture_that_cannot_be_drawn_costs_no_number(
    json_wanted: bool, rope: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert extrapolate(rope).code == 0

    def broken(*arguments: Any) -> None:
        raise RunError("cannot draw: no fonts")

    monkeypatch.setattr(plots, "plot_extrapolation", broken)
    done = extrapolate(rope, "--lengths", "32", *["--json"] * json_wanted)
    assert done.code == 0
    assert "warning: cannot draw: no fonts" in done.err
    assert lengths_of(done.json["rows"]) == [32] if json_wanted else "same_targets" in done.out
    assert "extrapolation.png" not in done.out
    assert not (rope / "extrapolation.png").exists()
    assert len(read_csv(rope / "extrapolation.csv")) == 1


def test_pictures_need_no_display(rope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("MPLBACKEND", "TkAgg")
    assert extrapolate(rope, "--lengths", "32").code == 0
    assert os.environ["MPLBACKEND"] == "TkAgg"
    assert (rope / "extrapolation.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_leaves_the_tables_of_before(rope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of(rope, "--lengths", "32")
    before = (rope / "extrapolation.csv").read_bytes()
    losses = text_evaluation.character_losses

    def stopped(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return losses(*arguments)

    monkeypatch.setattr(text_evaluation, "character_losses", stopped)
    done = extrapolate(rope, "--lengths", "64")
    assert (done.code, done.out) == (130, "")
    assert "interrupted; nothing was written" in done.err
    assert (rope / "extrapolation.csv").read_bytes() == before


def test_a_length_that_does_not_fit_into_memory_costs_no_other(rope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = text_evaluation.character_losses

    def greedy(model: Any, ids: Any, targets: Any, *more: Any) -> Any:
        if targets.lengths[0] == 64:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes")
        return losses(model, ids, targets, *more)

    monkeypatch.setattr(text_evaluation, "character_losses", greedy)
    done = extrapolate(rope, "--lengths", "32,64,100")
    assert done.code == 0
    assert "none: out_of_memory at 64" in done.out
    assert [row["status"] for row in read_csv(rope / "extrapolation.csv")] == ["ok", "out_of_memory", "ok"]


# --- which text ---


def test_a_text_that_changed_since_the_training_is_refused_with_both_hashes(tmp_path: Path) -> None:
    run, text = trained(tmp_path, encoding="rope"), tmp_path / "text.txt"
    then = json.loads((run / "run.json").read_text())["data_hash"]
    before = rows_of(run, "--lengths", "32")[0]["loss"]
    kept = text.read_text()
    text.write_text(kept[:-1] + ("a" if kept[-1] != "a" else "t"))
    refused(extrapolate(run), str(text), then, "SHA-256 now", "--data")
    assert rows_of(run, "--data", text, "--lengths", "32")[0]["loss"] != before
    text.write_text(kept.replace("p", "q"))  # as many characters, and in the same order
    refused(extrapolate(run), "'q' U+0071", "outside the alphabet")
    refused(extrapolate(run, "--data", text), "'q' U+0071")
    text.unlink()
    refused(extrapolate(run), str(text), "no such file")


def test_another_text_is_read_by_the_alphabet_of_the_run(rope: Path, tmp_path: Path) -> None:
    other = text_file(tmp_path / "other.txt", chars=1200)
    done = extrapolate(rope, "--data", other, "--lengths", "32")
    assert done.code == 0
    assert f"text: {other}, 120 held-out characters" in done.out
    strange = tmp_path / "strange.txt"
    strange.write_text(other.read_text() + "ZZ é☃ Z")
    done = extrapolate(rope, "--data", strange)
    refused(done, str(strange), "'Z' U+005A (3 times)", "'é' U+00E9 (once)", "'☃' U+2603 (once)", ": 3: ")
