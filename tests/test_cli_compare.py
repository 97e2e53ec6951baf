"""`pe compare` that goes well, what it would do, and what it refuses before any time is spent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Finished
from small_runs import (
    compare,
    config_file,
    configs,
    read_csv,
    refused,
    statuses,
    without_processes_and_pictures,
)

from pe_cli import comparing
from pe_cli.comparing import listed
from pe_cli.comparison import ROW_COLUMNS, RUN_COLUMNS
from pe_cli.errors import RunFailed
from pe_cli.summary import SUMMARY_COLUMNS

NAMES = ('a,b "c" [d]', "NA")
"""A name that CSV must quote and Rich would take for markup, and one that pandas takes for a missing value."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    without_processes_and_pictures(monkeypatch)


def as_text(row: dict[str, Any]) -> dict[str, str]:
    return {key: "" if value is None else str(value) for key, value in row.items()}


# --- a comparison that goes well ---


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    config_file(folder / "first.yaml", encoding="rope", name=NAMES[0])
    config_file(folder / "NA.yaml", encoding="learned")
    return folder


@pytest.fixture(scope="module")
def done(two: Path) -> Finished:
    """Both configs at two seeds."""
    with pytest.MonkeyPatch.context() as patch:
        without_processes_and_pictures(patch)
        return again(two, "--json")


def again(two: Path, *arguments: object) -> Finished:
    return compare(two / "first.yaml", two / "NA.yaml", "--seeds", "2", "--out", two / "out", "--name", "x", *arguments)


def test_json_is_complete(done: Finished, two: Path) -> None:
    assert done.code == 0, done
    assert list(done.json) == ["runs", "rows", "summary"]
    runs = done.json["runs"]
    assert [(run["name"], run["seed"]) for run in runs] == [(name, seed) for name in NAMES for seed in (1337, 1338)]
    assert {tuple(run) for run in runs} == {RUN_COLUMNS}
    for run in runs:
        assert (run["status"], run["reason"]) == ("finished", None)
        assert run["threads"] == torch.get_num_threads()  # runs in this process leave its threads alone
        assert (
            json.loads((Path(run["directory"]) / "run.json").read_text())["validation_loss"] == run["validation_loss"]
        )
    assert [run["config"] for run in runs] == [str(two / name) for name in ("first.yaml", "NA.yaml") for _ in range(2)]
    assert {tuple(row) for row in done.json["rows"]} == {ROW_COLUMNS}
    assert {tuple(row) for row in done.json["summary"]} == {SUMMARY_COLUMNS}
    keys = [(row["name"], row["seed"], row["length"]) for row in done.json["rows"]]
    assert keys == [(name, seed, length) for name in NAMES for seed in (1337, 1338) for length in (16, 32, 64)]
    assert [(row["name"], row["length"]) for row in done.json["summary"]] == [
        (name, length) for name in NAMES for length in (16, 32, 64)
    ]


def test_files_hold_what_was_printed(done: Finished, two: Path) -> None:
    folder = two / "out" / "x"
    for name, columns in (("comparison", ROW_COLUMNS), ("summary", SUMMARY_COLUMNS), ("runs", RUN_COLUMNS)):
        rows = read_csv(folder / f"{name}.csv")
        assert tuple(rows[0]) == columns
        printed = done.json[{"comparison": "rows"}.get(name, name)]
        assert rows == [as_text(row) for row in printed]
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.csv", "comparison.md", "comparison.png", "runs.csv", "summary.csv",
    ]  # fmt: skip
    assert sorted(path.name for path in (two / "out").iterdir()) == ["runs", "x"]


def test_rows_are_those_of_the_runs(done: Finished) -> None:
    for run in done.json["runs"]:
        own = read_csv(Path(run["directory"]) / "extrapolation.csv")
        rows = [row for row in done.json["rows"] if row["run"] == Path(run["directory"]).name]
        assert [as_text({key: row[key] for key in own[0]}) for row in rows] == own


def test_summary_is_over_seeds_and_paired_with_the_first_config(done: Finished) -> None:
    rows, summary = done.json["rows"], done.json["summary"]
    losses = {(row["name"], row["seed"], row["length"]): row["loss"] for row in rows}
    for entry in summary:
        own = [losses[entry["name"], seed, entry["length"]] for seed in (1337, 1338)]
        if entry["name"] == "NA" and entry["length"] > 16:
            assert own == [None, None]
            assert [entry[key] for key in ("seeds", "loss", "difference", "rank")] == [0, None, None, None]
            continue
        base = [losses[NAMES[0], seed, entry["length"]] for seed in (1337, 1338)]
        assert entry["seeds"] == 2
        assert entry["baseline"] == NAMES[0]
        assert entry["loss"] == pytest.approx(sum(own) / 2)
        assert entry["difference"] == pytest.approx(sum(own) / 2 - sum(base) / 2, abs=1e-9)
        # Student's t with one degree of freedom at 97.5 % is 12.7062; the standard error of two is half their distance
        assert entry["loss_high"] - entry["loss"] == pytest.approx(12.7062 * abs(own[0] - own[1]) / 2, rel=1e-4)
    # two seeds tell nothing apart
    assert [entry["rank"] for entry in summary if entry["length"] == 16] == [1, 1]


def test_the_line_of_a_run_names_its_strategy_and_several_protocols(folder: Path) -> None:
    asked = ("--lengths", "16,32", "--protocol")
    done = compare(*configs(folder, "none"), *asked, "same_targets,sliding")
    number = r"\d\.\d{3}"
    by = [f"loss by {protocol} at 16: {number}, 32: {number}" for protocol in ("same_targets", "sliding")]
    assert re.search(rf"^none-\w+-s1337: {by[0]}; {by[1]}$", done.err, re.MULTILINE), done.err
    done = compare("none.yaml", *asked, "sliding")
    assert re.search(rf"^none-\w+-s1337: loss at 16: {number}, 32: {number}$", done.err, re.MULTILINE), done.err
    done = compare("none.yaml", *asked, "sliding", "--strategy", "truncate")
    line = rf"^none-\w+-s1337 \+ truncate: loss at 16: {number}, 32: {number}$"
    assert re.search(line, done.err, re.MULTILINE), done.err


def test_all_encodings_see_the_same_batches(done: Finished) -> None:
    digests = {(run["name"], run["seed"]): run["data_digest"] for run in done.json["runs"]}
    assert digests[NAMES[0], 1337] == digests["NA", 1337]
    assert digests[NAMES[0], 1337] != digests[NAMES[0], 1338]


def test_names_are_printed_as_given_and_no_number_is_cut(
    done: Finished, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = again(two)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    narrow = again(two)
    assert wide.code == narrow.code == 0
    text = [line for line in narrow.out.splitlines() if not line.startswith("made by")]
    assert text == [line for line in wide.out.splitlines() if not line.startswith("made by")]
    assert "\x1b" not in narrow.out + narrow.err
    [line] = [line for line in text if line.startswith(NAMES[0])]
    losses = [entry["loss"] for entry in done.json["summary"] if entry["name"] == NAMES[0]]
    assert line.removeprefix(NAMES[0]).split() == ["2", *(f"{loss:.3f}" for loss in losses)]
    assert any(line.startswith("NA ") for line in text)
    assert "runs at a time with 1 thread each" in wide.out
    assert f"{two / 'out' / 'x' / 'comparison.md'}\n{two / 'out' / 'x' / 'comparison.png'}\n" in wide.out


def test_a_second_comparison_retrains_nothing(done: Finished, two: Path) -> None:
    def trainings() -> list[Any]:
        kept = ("model.safetensors", "state.safetensors", "training.csv", "run.json", "config.yaml")
        directories = [Path(run["directory"]) for run in done.json["runs"]]
        seconds = [json.loads((directory / "run.json").read_text())["seconds"] for directory in directories]
        return [seconds, *((directory / name).stat().st_mtime_ns for directory in directories for name in kept)]

    before = trainings()
    later = again(two, "--json", "--lengths", "32,100", "--baseline", "na", "--set", "evaluation.windows=3", "--resume")
    assert later.code == 0
    assert trainings() == before
    assert {row["length"] for row in later.json["rows"]} == {32, 100}
    assert {row["scored_chars"] for row in later.json["rows"] if row["status"] == "ok"} == {24}
    assert {entry["baseline"] for entry in later.json["summary"]} == {"NA"}


def test_tables_that_somebody_removed_are_made_again(folder: Path) -> None:
    first = compare(*configs(folder, "none"), "--json")
    removed = [*folder.glob("results/runs/none-*/*.csv"), *folder.glob("results/none/*")]
    for path in removed:
        path.unlink()
    again = compare("none.yaml", "--json")
    assert again.code == 0
    for before, after in zip(first.json["rows"], again.json["rows"], strict=True):
        assert {**after, "seconds": 0} == {**before, "seconds": 0}
    assert all(path.is_file() for path in removed if path.name not in ("training.csv", "validation.csv"))


# --- what is planned ---


def test_files_of_recipes_that_are_not_compared_any_more_are_removed(folder: Path) -> None:
    varied = ["--vary", "training.steps=5"]
    for more, there in ((varied, True), ([], False), (varied, True)):
        done = compare(*configs(folder, "rope", "none"), *more, "--name", "x")
        assert done.code == 0, done
        assert (folder / "results" / "x" / "orderings.csv").exists() == there


def test_a_dry_run_names_the_directories_and_makes_none(folder: Path) -> None:
    paths = configs(folder, "none", "rope")
    plain, strict = (compare(*paths, "--seeds", "3", "--dry-run", *more) for more in ([], ["--json"]))
    assert plain.code == strict.code == 0
    assert not (folder / "results").exists()
    directories = [run["directory"] for run in strict.json["runs"]]
    assert plain.out.splitlines() == directories
    assert [(run["name"], run["seed"]) for run in strict.json["runs"]] == [
        (name, seed) for name in ("none", "rope") for seed in (1337, 1338, 1339)
    ]
    assert all(directory.startswith("results/runs/") for directory in directories)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["*.yaml"], ["none", "rope", "t5"]),
        (["rope.yaml", "*.yaml", "./rope.yaml"], ["rope", "none", "t5"]),
        (["[nr]*.yaml"], ["none", "rope"]),
        (["rope.yaml", "rope.yaml"], ["rope"]),
        (["**/*.yaml"], ["deep", "none", "rope", "t5"]),
    ],
    ids=str,
)
def test_patterns_in_quotes_are_expanded(arguments: list[str], names: list[str], folder: Path) -> None:
    configs(folder, "none", "rope", "t5")
    if "**/*.yaml" in arguments:
        config_file(folder / "sub" / "deep.yaml", encoding="rope")
    done = compare(*arguments, "--dry-run", "--json")
    assert sorted(run["name"] for run in done.json["runs"]) == sorted(names)
    assert done.json["runs"][0]["name"] == names[0] or "**/*.yaml" in arguments


def test_seeds_are_a_number_or_a_list(folder: Path) -> None:
    [path] = configs(folder, "none")

    def seeds(*arguments: object) -> list[int]:
        return [run["seed"] for run in compare(path, "--dry-run", "--json", *arguments).json["runs"]]

    assert seeds() == [1337]
    assert seeds("--seeds", "3") == [1337, 1338, 1339]
    assert seeds("--seeds", "1,2,3") == [1, 2, 3]
    assert seeds("--seeds", "2", "--seed", "5") == [5, 6]


def test_quick_changes_steps_and_lengths_and_nothing_that_was_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def execute(planned: Any, *more: Any) -> list[Any]:
        seen.extend(planned)
        raise RunFailed("seen enough")

    monkeypatch.setattr(comparing, "execute", execute)
    path = config_file(folder / "none.yaml", encoding="none", data="pydocs", training={"steps": 5000})
    compare(path, "--quick")
    compare(path, "--quick", "--set", "training.steps=7", "--lengths", "16,48")
    compare(path, "--quick", "--set", "evaluation.lengths=16,48")
    compare(path, "--quick", "--set", "training.length=2048")
    compare(path, "--quick", "--set", "evaluation.windows=3", "--max-len", "32")
    task = folder / "task.yaml"
    task.write_text("data: {task: copy, max_length: 4}", encoding="utf-8")
    compare(task, "--quick")
    compare(task, "--quick", "--max-len", "32")
    experiments = [run.experiment for run in seen]
    assert [(one.training.steps, one.evaluation.lengths, one.evaluation.windows) for one in experiments] == [
        (60, (16, 32, 64, 128, 256, 512, 1024), 8),
        (7, (16, 48), 8),
        (60, (16, 48), 8),
        (60, (2048,), 8),
        (60, (16, 32), 3),
        (60, (2, 4, 8, 12, 16), 256),
        (60, (4, 8, 16, 32), 256),
    ]
    assert (folder / "results" / "none-quick").is_dir()


# --- what is refused ---


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["zz*.yaml"], ["'zz*.yaml'", "nothing matches"]),
        (["missing.yaml"], ["'missing.yaml'", "there is no file"]),
        (["sub"], ["sub", "is a directory"]),
        (
            ["none.yaml", "sub/none.yaml"],
            ["none.yaml", "sub/none.yaml", "the same training under the same name 'none'"],
        ),
        (["none.yaml", "--baseline", "nonne"], ["--baseline", "'nonne'", "did you mean 'none'?"]),
        (["none.yaml", "--name", "runs"], ["--name", "'runs'"]),
        (["none.yaml", "--name", "../up"], ["--name", "'../up'"]),
        (["none.yaml", "--name", ".hidden"], ["--name", "'.hidden'"]),
        (["none.yaml", "--name", "x" * 300], ["--name", "xxx", "100 bytes"]),
        (["none.yaml", "--seeds", "0"], ["--seeds", "0"]),
        (["none.yaml", "--seeds", "1,x"], ["--seeds", "x"]),
        (["none.yaml", "--max-len", "100x"], ["--max-len", "100x"]),
        (["none.yaml", "--max-len", "8"], ["none.yaml", "--max-len 8", "training length 16"]),
        (["none.yaml", "--max-len", "32", "--lengths", "64"], ["--max-len", "--lengths", "give one of them"]),
        (["none.yaml", "--lengths", "64,,128"], ["evaluation.lengths", "64,,128"]),
        (["none.yaml", "--strategy", "wrapp"], ["'wrapp'", "did you mean 'wrap'?"]),
        (["none.yaml", "--set", "training.stepz=3"], ["training.stepz", "did you mean 'steps'?"]),
        (["none.yaml", "--lengths", "500,600"], ["none.yaml", "no length can be evaluated", "500", "133"]),
        (["none.yaml", "--force", "--resume"], ["--force", "--resume"]),
        (["none.yaml", "--device", "potato"], ["'potato'"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_what_cannot_be_asked_for_is_refused(arguments: list[str], parts: list[str], folder: Path) -> None:
    configs(folder, "none")
    config_file(folder / "sub" / "none.yaml", encoding="none", data="../text.txt")
    refused(compare(*arguments), *parts)
    assert not (folder / "results").exists()


def bad_configs(folder: Path) -> list[Path]:
    (folder / "broken.yaml").write_text("encoding: [rope\n")
    return [
        config_file(folder / "unknown.yaml", encoding="rop"),
        config_file(folder / "absent.yaml", data="absent.txt"),
        config_file(folder / "odd.yaml", encoding="rope", model={"d_model": 15}),
        config_file(folder / "long.yaml", training={"length": 5000}),
        folder / "broken.yaml",
    ]


def test_all_bad_configs_are_named_and_nothing_is_left_behind(folder: Path) -> None:
    bad, before = bad_configs(folder), set(folder.iterdir())
    [good] = configs(folder, "none")
    refused(compare(bad[0], good, *bad[1:]), *(path.name for path in bad), "did you mean 'rope'", "5001")
    refused(compare(*bad, "--keep-going"), *(path.name for path in bad))
    assert set(folder.iterdir()) == {*before, good}


def test_many_bad_configs_are_named_in_few_lines(folder: Path) -> None:
    bad = [config_file(folder / f"bad{number}.yaml", encoding="rop") for number in range(40)]
    refused(compare(*bad), *(path.name for path in bad))


def test_errors_below_each_other_are_whole_if_they_are_short() -> None:
    assert listed([("a", "a: wrong\n  detail"), ("b", "b: wrong")]) == "a: wrong\n  detail\nb: wrong"
    long = listed([(f"c{number}", f"c{number}: wrong\n  detail") for number in range(10)], "10 are wrong")
    assert long.splitlines() == ["10 are wrong", *(f"c{number}: wrong" for number in range(10))]
    many = listed([(f"c{number}", f"c{number}: wrong") for number in range(20)], "20 are wrong").splitlines()
    assert many[1:14] == [f"c{number}: wrong" for number in range(13)]
    assert many[14:] == ["also: c13, c14, c15, c16, c17, c18, c19"]


def test_keep_going_marks_the_bad_and_runs_the_rest(folder: Path) -> None:
    done = compare(*bad_configs(folder), *configs(folder, "none"), "--keep-going", "--json", "--name", "x")
    assert done.code == 1
    marked = ["unknown", "absent", "odd", "long", "broken"]
    assert statuses(done) == {"none": "finished", **dict.fromkeys(marked, "failed")}
    reasons = {run["name"]: run["reason"] for run in done.json["runs"]}
    assert "did you mean 'rope'" in reasons["unknown"]
    assert [run["seed"] for run in done.json["runs"]] == [1337, *[None] * 5]
    assert {row["name"] for row in done.json["rows"]} == {"none"}
    assert "warning: left out: " in done.err
    assert "5 of 6 runs have no result" in done.err
    assert "did you mean 'rope'" in (folder / "results" / "x" / "comparison.md").read_text()


def test_a_comparison_that_cannot_be_written_is_refused_before_it_begins(folder: Path) -> None:
    (folder / "results").mkdir()
    (folder / "results" / "none").write_text("in the way")
    done = compare(*configs(folder, "none"))
    refused(done, str(folder / "results" / "none"), "in the way")
    assert list((folder / "results" / "runs").iterdir()) == []
