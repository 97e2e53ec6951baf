"""Several processes: of one command, that are killed together or one by one, and of several commands at once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import Finished, info, only_run, pe, pe_process, training
from processes import kill_all, members, started, until, words
from small_runs import config_file, read_csv

from pe_cli import runs

if not Path("/proc/self/stat").exists():
    pytest.skip("tells processes by /proc", allow_module_level=True)


def test_ctrl_c_at_a_terminal_while_the_first_process_begins(tmp_path: Path) -> None:
    """A terminal sends it to all processes; the one that the others are forked from is still importing then."""
    config = config_file(tmp_path / "slow.yaml", encoding="rope", training={"steps": 100_000})
    with open(tmp_path / "err", "w") as err, open(tmp_path / "out", "w") as out:
        command = started("compare", config, "--out", tmp_path, stdout=out, stderr=err)
    until(lambda: any("forkserver" in words(process) for process in members(command.pid)))
    kill_all(command.pid, signal.SIGINT)
    assert command.wait(120) == 130
    said = (tmp_path / "err").read_text()
    assert "Traceback" not in said
    assert "the same command goes on" in said
    assert until(lambda: not members(command.pid))


def test_a_comparison_that_is_killed_takes_its_processes_with_it(tmp_path: Path) -> None:
    config = config_file(tmp_path / "slow.yaml", encoding="rope", training={"steps": 3000, "save_every": 20})
    with open(tmp_path / "log", "w") as log:
        command = started("compare", config, "--jobs", 1, "--threads", 1, "--out", tmp_path, stdout=log, stderr=log)
    until(lambda: list(tmp_path.glob("runs/slow-*/training.csv")))
    os.kill(command.pid, signal.SIGKILL)
    command.wait()
    until(lambda: not members(command.pid), 10)
    run = only_run(tmp_path)
    assert (info(run)["status"], runs.open_run(run).status) == ("running", "interrupted")
    name, identity, _ = run.name.rsplit("-", 2)
    with runs.create(run.parent, name, identity, 1337, force=False, resume=True) as again:
        assert again.load_state()[1]["step"] % 20 == 0


def test_a_comparison_under_a_temporary_directory_of_a_long_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paths of sockets have at most 107 characters on Linux, and those of files 4096."""
    config = config_file(tmp_path / "short.yaml", encoding="rope", training={"steps": 2})
    monkeypatch.setenv("TMPDIR", str(tmp_path / ("x" * 100)))
    (tmp_path / ("x" * 100)).mkdir()
    with open(tmp_path / "log", "w") as log:
        command = started("compare", config, "--threads", 1, "--out", tmp_path / "out", stdout=log, stderr=log)
        assert command.wait(300) == 0, (tmp_path / "log").read_text()
    assert info(only_run(tmp_path / "out"))["status"] == "finished"


def together(tmp_path: Path, commands: list[list[object]]) -> list[Finished]:
    """Commands that begin in the same moment."""
    folders = [tmp_path / f"streams{number}" for number in range(len(commands))]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(lambda folder, arguments: pe_process(folder, *arguments), folders, commands))


def test_of_four_equal_trainings_begun_at_once_one_trains(tmp_path: Path) -> None:
    done = together(tmp_path, [training(tmp_path / "out")] * 4)
    begun = [one for one in done if "training rope-" in one.err]
    assert [one.code for one in begun] == [0]
    for one in done:
        if one.code != 0:
            assert (one.code, one.out) == (2, "")
            [line] = one.err.splitlines()
            assert line.startswith("error: another process is training or evaluating this run: ")
    run = only_run(tmp_path / "out")
    assert [row["step"] for row in read_csv(run / "training.csv")] == ["10", "20", "30", "40"]
    assert pe(*training(tmp_path / "alone")).code == 0
    assert info(run)["weight_sha256"] == info(only_run(tmp_path / "alone"))["weight_sha256"]
    assert not list((tmp_path / "out").rglob(".*.tmp"))


def test_of_two_equal_comparisons_begun_at_once_one_is_made(tmp_path: Path) -> None:
    """The other one would tell of runs that another process trains, in the same tables."""
    config = config_file(tmp_path / "slow.yaml", encoding="rope", training={"steps": 200})
    asked: list[object] = ["compare", config, "--name", "both", "--jobs", 1, "--threads", 1, "--out", tmp_path / "out"]
    done = sorted(together(tmp_path, [asked] * 2), key=lambda one: one.code)
    assert [one.code for one in done] == [0, 2]
    assert done[1].err == f"error: another process is making this: {tmp_path / 'out' / 'both'}\n"
    assert [row["status"] for row in read_csv(tmp_path / "out" / "both" / "runs.csv")] == ["finished"]
    assert pe(*asked).code == 0


@pytest.mark.parametrize("more", [[], ["--force"]], ids=["as it comes", "forced"])
def test_two_comparisons_at_once_that_share_a_run_train_it_once(more: list[str], tmp_path: Path) -> None:
    """The second one waits for the run, and tells of it what the first one tells."""
    config = config_file(tmp_path / "slow.yaml", encoding="rope", training={"steps": 200})
    names = ["first", "second"]
    shared = ["--jobs", 1, "--threads", 1, "--out", tmp_path / "out", *more]
    done = together(tmp_path, [["compare", config, "--name", name, *shared] for name in names])
    assert [one.code for one in done] == [0, 0]
    assert sum("another process is training or evaluating this run" in one.err for one in done) == 1
    steps = [row["step"] for row in read_csv(only_run(tmp_path / "out") / "training.csv")]
    assert steps == sorted(set(steps), key=int)
    first, second = [
        [{**row, "seconds": None} for row in read_csv(tmp_path / "out" / name / "comparison.csv")] for name in names
    ]  # both may evaluate it
    assert first == second


def test_four_seeds_begun_at_once_are_four_runs(tmp_path: Path) -> None:
    done = together(tmp_path, [training(tmp_path / "out", "--seed", seed) for seed in range(4)])
    assert Counter(one.code for one in done) == {0: 4}
    found = [runs.open_run(name, tmp_path / "out" / "runs") for name in runs.known(tmp_path / "out" / "runs")]
    assert {(run.info["seed"], run.status) for run in found} == {(seed, "finished") for seed in range(4)}
    assert runs.newest(tmp_path / "out" / "runs").status == "finished"
    assert not list((tmp_path / "out").rglob(".*.tmp"))
