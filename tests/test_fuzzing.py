"""A few mutants of configs and of runs, and that what tries them sees what is wrong."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from fuzzing import Tally, checkpoints, configs, table
from watched import Seen, audited, watched

from pe_cli import commands


def test_a_few_mutants_of_configs() -> None:
    told: list[str] = []
    config, planned = configs(25, seed=20, tell=told.append)
    assert told == []
    assert (config.tried, planned.tried) == (25, 25)
    assert config.ends["accepted"] > 0
    assert config.ends["refused"] > 5


def test_a_few_damaged_runs() -> None:
    told: list[str] = []
    tallies = checkpoints(12, seed=20, tell=told.append)
    assert told == []
    assert sum(one.tried for one in tallies) == 12
    assert sum(one.ends["refused"] for one in tallies) > 2


def test_one_number_is_one_mutant() -> None:
    """So that a fault can be looked at by itself."""
    told: list[str] = []
    assert [one.tried for one in configs(100, seed=3, only=7, tell=told.append)] == [1, 1]
    assert told == []


def test_what_is_written_outside_of_the_folder_is_heard(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    with audited(inside) as found:
        (inside / "a").write_text("")
        (inside / "a").rename(inside / "b")
        (outside / "gone").exists()
    assert found == []
    with audited(inside) as found:
        (inside / "link" / "c").write_text("")
        (outside / "d").mkdir()
        os.symlink("d", outside / "e")
        (inside / "b").rename(outside / "b")
    assert [line.rpartition("/")[-1] for line in found] == ["c", "d", "e", "b"]


def test_a_pickle_and_a_program_are_heard(tmp_path: Path) -> None:
    with audited(tmp_path) as found:
        pickle.loads(pickle.dumps(Path("x")))
        os.system("true")
    assert [line.split()[0] for line in found] == ["pickle.find_class", "os.system"]


def test_a_traceback_and_a_long_message_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr(commands, "config", fail)
    seen = watched(tmp_path, ["config"])
    assert (seen.outcome, len(seen.faults)) == ("traceback", 1)
    assert "a fault" in seen.faults[0]
    refused = watched(tmp_path, ["sample", "--out", tmp_path])
    assert (refused.outcome, refused.faults) == ("refused", ())


def test_the_table_counts_ends_and_faults() -> None:
    tally = Tally("config")
    tally.add(Seen("accepted", (), 3.0), [])
    tally.add(Seen("traceback", ("x",), 1.0), ["x", "written outside of the folder: /x"])
    assert table([tally]).splitlines()[2] == "| config | 2 | 1 | 0 | 0 | 1 | 1 | 1 | 3 |"
