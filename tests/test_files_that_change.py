"""Files of runs that another command, another machine or a person has changed, and what is made of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from command_line import Finished, info, pe
from small_runs import (
    SMALL,
    compare,
    config_file,
    configs,
    one_after_another,
    statuses,
    text_file,
    without_processes_and_pictures,
)

from pe_cli import claiming, comparing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    without_processes_and_pictures(monkeypatch)
    return tmp_path


def run_of(name: str) -> Path:
    [found] = Path("results/runs").glob(f"{name}-*")
    return found


def edit(run: Path, **changes: Any) -> None:
    (run / "run.json").write_text(json.dumps({**info(run), **changes}), encoding="utf-8")


# --- what another command does meanwhile ---


@pytest.mark.parametrize("module", [comparing, claiming])
def test_another_evaluation_of_a_run_meanwhile_changes_no_number(
    module: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then_another(*arguments: Any) -> Any:
        outcomes = one_after_another(*arguments)
        assert pe("extrapolate", run_of("rope"), "--lengths", "128", "--strategy", "ntk").code == 0
        return outcomes

    monkeypatch.setattr(module, "execute", then_another)
    if module is comparing:
        done = compare(*configs(folder, "rope", "alibi"), "--json")
        lengths = [(row["name"], row["length"], row["strategy"]) for row in done.json["rows"]]
        assert lengths == [(name, length, "none") for name in ("rope", "alibi") for length in (16, 32, 64)]
        assert all(entry["difference"] is not None for entry in done.json["summary"])
    else:
        [holds] = claim(folder, holds=["loss(rope, 64) > 0.1"], seeds="1337,").json[0]["inequalities"]
        assert holds["left"] > 0.1


# --- what a person or a disk does ---


def cut(share: float) -> Callable[[bytes], bytes]:
    """At the end of a line."""
    return lambda content: b"\n".join(content.split(b"\n")[: 1 + round(share * content.count(b"\n"))]) + b"\n"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("extrapolation.csv", cut(0)),
        ("extrapolation.csv", cut(0.5)),
        ("windows.csv", cut(0.5)),
        ("positions.csv", lambda content: content[:-9]),
    ],
    ids=range(4),
)
def test_tables_that_are_not_what_was_written_are_made_again(
    name: str, change: Callable[[bytes], bytes], folder: Path
) -> None:
    [config] = configs(folder, "rope")
    first = compare(config, "--json")
    table = run_of("rope") / name
    content = table.read_bytes()
    table.write_bytes(change(content))
    again = compare(config, "--json")
    assert again.code == 0, again.err
    assert [{**row, "seconds": 0} for row in again.json["rows"]] == [
        {**row, "seconds": 0} for row in first.json["rows"]
    ]
    assert table.read_bytes().count(b"\n") == content.count(b"\n")


def test_a_record_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    [config] = configs(folder, "rope")
    compare(config)
    record = run_of("rope") / "evaluation.json"
    record.unlink()
    os.mkfifo(record)

    def waits(*_: object) -> NoReturn:
        raise AssertionError("somebody waits for the other end")

    before = signal.signal(signal.SIGALRM, waits)
    signal.alarm(60)
    try:
        assert compare(config).code == 0
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert record.is_file()


@pytest.mark.parametrize("content", [b"{", b"[]"])
def test_a_damaged_run_json_costs_no_other_run(content: bytes, folder: Path) -> None:
    paths = configs(folder, "rope", "alibi")
    compare(*paths)
    (run_of("rope") / "run.json").write_bytes(content)
    done = compare(*paths, "--json")
    assert done.code == 1
    assert statuses(done) == {"rope": "failed", "alibi": "finished"}
    assert "run.json" in done.json["runs"][0]["reason"]


@pytest.mark.parametrize("value", ["x", True, 10**400], ids=range(3))
def test_a_number_of_run_json_that_is_none_is_said_or_left_out(value: Any, folder: Path) -> None:
    [config] = configs(folder, "rope")
    compare(config)
    edit(run_of("rope"), seconds=value)
    done = compare(config, "--json")
    assert (done.code, done.json["runs"][0]["seconds"]) == (0, None)
    again = pe("train", config, "--threads", 1)
    assert again.code == 2
    assert "seconds" in again.err
    assert "is not a number" in again.err


# --- a claim asks runs that are there already ---

ASKED = {"task": "passkey", "statement": "the mat ", "ending": "\nand ", "filler": "the cat sat on ", "key_length": 2}


def claim(folder: Path, seeds: str = "2", **changes: Any) -> Finished:
    """One run of rope, and what is said of it."""
    values = {"claim": "c", "source": "s", "seeds": 2, "why": "w", "common": {"data": "text.txt", **SMALL}}
    stated = {**values, "runs": {"rope": {"encoding": "rope"}}, **changes}
    (folder / "claim.yaml").write_text(json.dumps(stated), encoding="utf-8")
    text_file(folder / "text.txt")
    return pe("claims", "claim.yaml", "--threads", 1, "--json", "--seeds", seeds)


@pytest.mark.parametrize("changes", [{"protocols": ["sliding"]}, {"windows": 4}])
def test_what_a_run_is_asked_does_not_depend_on_who_trained_it(changes: dict[str, Any], folder: Path) -> None:
    common = {"data": "text.txt", **SMALL, "evaluation": {**SMALL["evaluation"], **changes}}
    stated = {"common": common, "asked": {"key": ASKED}, "holds": ["margin(rope on key, 64) > -99"]}
    [fresh] = claim(folder, **stated).json
    assert fresh["verdict"] == "reproduced"
    config_file(folder / "rope.yaml", encoding="rope")
    for seed in (1337, 1338):
        assert pe("train", "rope.yaml", "--seed", seed, "--force", "--threads", 1).code == 0
    [after] = claim(folder, **stated).json
    assert after["inequalities"] == fresh["inequalities"]


def test_a_run_of_a_machine_with_another_device_is_asked_here(folder: Path) -> None:
    stated = {"asked": {"key": ASKED}, "holds": ["margin(rope on key, 64) > -99"]}
    [fresh] = claim(folder, **stated).json
    for run in Path("results/runs").glob("rope-*"):
        edit(run, device="cuda:7")
    [after] = claim(folder, **stated).json
    assert after["inequalities"] == fresh["inequalities"]
