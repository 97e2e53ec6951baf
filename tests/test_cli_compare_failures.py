"""What one run that fails, in whatever way, costs the others in `pe compare`: nothing."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from dying import rope_dies_while_it_tells
from small_runs import compare, config_file, configs, read_csv, statuses, without_processes_and_pictures

from pe_cli import collection, execution, files, plots, text_evaluation
from pe_cli.comparing import Watching
from pe_cli.errors import RunError
from pe_cli.execution import Message
from pe_cli.training import Trainer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes and pictures take longer than all the rest: only tests of them have them."""
    if "process" not in request.node.name:
        without_processes_and_pictures(monkeypatch)


def wild(folder: Path) -> Path:
    training = {"learning_rate": 1000.0, "optimizer": "adamw", "steps": 30}
    return config_file(folder / "wild.yaml", encoding="rope", training=training)


def test_a_run_that_diverges_costs_no_other_and_never_ranks(folder: Path) -> None:
    done = compare(wild(folder), *configs(folder, "none", "rope"), "--json")
    assert done.code == 1
    assert statuses(done) == {"wild": "diverged", "none": "finished", "rope": "finished"}
    assert {row["name"] for row in done.json["rows"]} == {"none", "rope"}
    assert {entry["rank"] for entry in done.json["summary"]} == {1, 2}
    assert {entry["difference"] for entry in done.json["summary"]} == {None}
    [run] = [run for run in done.json["runs"] if run["name"] == "wild"]
    assert "the loss was" in run["reason"]
    assert json.loads((Path(run["directory"]) / "run.json").read_text())["status"] == "diverged"
    assert "1 of 3 runs have no result" in done.err
    assert statuses(compare("wild.yaml", "none.yaml", "--json"))["wild"] == "diverged"


def test_nothing_that_ends_well_is_exit_code_1_with_its_reasons(folder: Path) -> None:
    done = compare(wild(folder))
    assert done.code == 1
    assert "Runs without a result" in done.out
    assert "diverged" in done.out
    assert "comparison.png" not in done.out
    assert not list(folder.glob("results/*/comparison.png"))
    assert (folder / "results" / "wild" / "runs.csv").is_file()


def test_an_error_in_a_run_marks_that_run_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Trainer.one_step

    def breaks(trainer: Trainer) -> float:
        if trainer.experiment.name == "rope":
            raise ZeroDivisionError("in the middle of it")
        return step(trainer)

    monkeypatch.setattr(Trainer, "one_step", breaks)
    done = compare(*configs(folder, "rope", "none"), "--json")
    assert done.code == 1
    assert statuses(done) == {"rope": "failed", "none": "finished"}
    assert done.json["runs"][0]["reason"] == "ZeroDivisionError: in the middle of it"
    assert "Traceback" not in done.err
    monkeypatch.setattr(Trainer, "one_step", step)
    assert statuses(compare("rope.yaml", "none.yaml", "--json")) == {"rope": "finished", "none": "finished"}


def test_a_run_evaluated_at_no_length_is_no_success(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(text_evaluation, "character_losses", full)
    done = compare(*configs(folder, "none"), "--json")
    assert done.code == 1
    assert {row["status"] for row in done.json["rows"]} == {"out_of_memory"}
    assert "no length could be evaluated: length 16 does not fit into memory" in done.err


def test_nothing_but_undefined_lengths_is_bad_input(folder: Path) -> None:
    done = compare(*configs(folder, "learned"), "--lengths", "32,64", "--json")
    assert done.code == 2
    assert {row["status"] for row in done.json["rows"]} == {"undefined"}
    assert "no length could be evaluated: the learned table has 16 rows" in done.err


@pytest.mark.parametrize("json_wanted", [True, False])
def test_a_picture_that_cannot_be_drawn_costs_no_number(
    json_wanted: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> None:
        raise RunError("cannot draw: no fonts")

    for name in ("plot_extrapolation", "plot_comparison"):
        monkeypatch.setattr(plots, name, broken)
    done = compare(*configs(folder, "none"), *["--json"] * json_wanted)
    assert done.code == 0
    assert "warning: cannot draw: no fonts" in done.err
    assert statuses(done) == {"none": "finished"} if json_wanted else "At 64 characters (same_targets)" in done.out
    assert "comparison.png" not in done.out
    assert len(read_csv(folder / "results" / "none" / "comparison.csv")) == 3


def test_what_ends_between_two_tables_leaves_no_document_of_an_older_comparison(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill there would leave tables of two comparisons, of which none says so: comparison.md is missing then."""
    wanted = configs(folder, "none")
    assert compare(*wanted, "--name", "one").code == 0
    made = folder / "results" / "one"
    (made / "comparison.png").write_bytes(b"older")
    write_csv = files.write_csv

    def ends_before_the_summary(path: Path, *rest: Any) -> None:
        if path.name == "summary.csv":
            raise KeyboardInterrupt
        write_csv(path, *rest)

    monkeypatch.setattr(collection.files, "write_csv", ends_before_the_summary)
    with contextlib.suppress(KeyboardInterrupt):
        compare(*wanted, "--name", "one", "--lengths", "16")
    assert sorted(path.name for path in made.iterdir()) == ["comparison.csv", "runs.csv", "summary.csv"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    without_processes_and_pictures(monkeypatch)
    assert compare(*wanted, "--name", "one", "--lengths", "16").code == 0
    assert (made / "comparison.md").is_file()


def test_lengths_that_do_not_fit_are_said_before_and_the_rest_is_evaluated(folder: Path) -> None:
    done = compare(*configs(folder, "none", "rope"), "--max-len", "1024", "--json")
    assert done.code == 0
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert done.err.startswith(warnings[0])
    assert "skipping 256, 512, 1024: a window of 256 characters" in warnings[0]
    found = {row["length"]: row["status"] for row in done.json["rows"]}
    assert found == {length: "ok" if length <= 128 else "skipped" for length in (16, 32, 64, 128, 256, 512, 1024)}


# --- processes ---


@pytest.fixture
def at_first_progress(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """Do something when a run first tells how its training goes."""
    before = Watching.progress

    def install(name: str, act: Callable[[], None]) -> None:
        def progress(watching: Watching, message: Message) -> None:
            before(watching, message)
            if message.run.startswith(f"{name}-"):
                monkeypatch.setattr(Watching, "progress", before)
                act()

        monkeypatch.setattr(Watching, "progress", progress)

    return install


def kill_the_worker() -> None:
    [worker] = multiprocessing.active_children()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)


def test_a_process_that_is_killed_costs_no_other(
    folder: Path, at_first_progress: Callable[[str, Callable[[], None]], None]
) -> None:
    slow = config_file(folder / "slow.yaml", encoding="rope", training={"steps": 100_000})
    at_first_progress("slow", kill_the_worker)
    done = compare(slow, *configs(folder, "none"), "--jobs", 1, "--json")
    assert done.code == 1
    assert statuses(done) == {"slow": "failed", "none": "finished"}
    killed = done.json["runs"][0]
    assert "killed by signal 9" in killed["reason"]
    assert (Path(killed["directory"]) / "run.json").is_file()
    assert {row["name"] for row in done.json["rows"]} == {"none"}
    assert "slow" in done.err.splitlines()[-1]
    name = Path(done.json["runs"][1]["directory"]).name
    assert f"{name}: 10 of 10 (100%), training: loss " in done.err
    assert f"{name}: loss at 16: " in done.err
    pictures = list(folder.glob("results/**/*.png"))
    assert {path.name for path in pictures} == {"comparison.png", "extrapolation.png"}
    assert {path.read_bytes()[:4] for path in pictures} == {b"\x89PNG"}


def test_a_process_that_is_killed_in_the_middle_of_a_message_costs_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "work", rope_dies_while_it_tells)
    done = compare(*configs(folder, "rope", "none"), "--jobs", 1, "--json")
    assert (done.code, statuses(done)) == (1, {"rope": "failed", "none": "finished"})
    assert "killed by signal 9" in done.json["runs"][0]["reason"]
    assert {row["name"] for row in done.json["rows"]} == {"none"}


def test_a_process_that_cannot_begin_costs_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the process that the others are forked from is killed."""
    start, begun = ForkServerProcess.start, []

    def fails_once(process: ForkServerProcess) -> None:
        begun.append(process)
        if len(begun) == 1:
            raise EOFError("unexpected EOF")
        start(process)

    monkeypatch.setattr(ForkServerProcess, "start", fails_once)
    done = compare(*configs(folder, "rope", "none"), "--jobs", 1, "--json")
    assert (done.code, statuses(done)) == (1, {"rope": "failed", "none": "finished"})
    assert "its process could not be started: EOFError: unexpected EOF" in done.json["runs"][0]["reason"]


def test_ctrl_c_saves_the_process_and_the_same_command_goes_on(
    folder: Path, at_first_progress: Callable[[str, Callable[[], None]], None]
) -> None:
    slow = config_file(folder / "slow.yaml", encoding="rope", training={"steps": 500})
    [first] = configs(folder, "none")
    command = (first, slow, "--json")
    at_first_progress("slow", lambda: signal.raise_signal(signal.SIGINT))
    stopped = compare(*command, "--jobs", 1)
    assert stopped.code == 130
    assert "the same command goes on" in stopped.err
    assert statuses(stopped) == {"none": "finished", "slow": "interrupted"}
    assert {row["name"] for row in stopped.json["rows"]} == {"none"}
    step = json.loads((Path(stopped.json["runs"][1]["directory"]) / "run.json").read_text())["step"]
    assert 10 <= step < 500
    done = compare(*command, "--jobs", 2)
    assert done.code == 0
    assert set(statuses(done).values()) == {"finished"}
    assert done.json["runs"][0] == stopped.json["runs"][0]
    steps = [int(row["step"]) for row in read_csv(Path(done.json["runs"][1]["directory"]) / "training.csv")]
    assert steps == sorted(set(steps))
    assert steps[-1] == 500
    assert not math.isnan(done.json["runs"][1]["validation_loss"])


def test_fail_fast_begins_no_other_process(folder: Path) -> None:
    done = compare(wild(folder), *configs(folder, "none"), "--jobs", 1, "--fail-fast", "--json")
    assert done.code == 1
    assert statuses(done) == {"wild": "diverged", "none": "interrupted"}
    assert not list(folder.glob("results/runs/none-*"))
