"""Ctrl-C and SIGTERM while `pe train` works: everything is saved, and how to go on is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from command_line import hashes, only_run, pe, pe_process, signals_at, training
from matplotlib.backends.backend_agg import FigureCanvasAgg
from small_runs import config_file

from pe_cli import corpus, runs, sources


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_step_is_finished_and_everything_saved(tmp_path: Path, number: int, code: int) -> None:
    with signals_at(22, number):
        done = pe(*training(tmp_path, "--json"))
    run = only_run(tmp_path)
    assert (done.code, done.out) == (code, "")
    message = (
        f"error: stopped after step 23 of 40; everything is saved in {run}: the same command with --resume goes on"
    )
    assert done.err.splitlines()[-1] == message
    assert len(done.err.splitlines()) == 3  # what begins, its first ten steps, and that
    found = runs.open_run(run)
    assert (found.status, found.info["step"]) == ("interrupted", 23)
    assert found.info["reason"] == "stopped by a signal after step 23"
    weights, meta = found.load_state()
    assert meta["step"] == 23
    assert found.info["data_digest"] == meta["data_digest"]
    model = {name.removeprefix("model."): tensor for name, tensor in weights.items() if name.startswith("model.")}
    assert found.info["weight_sha256"] == runs.weight_sha256(model)
    assert runs.newest(tmp_path / "runs").path.name == run.name
    assert [path.name for path in run.iterdir() if path.name.endswith(".tmp")] == []


def test_before_the_first_step(tmp_path: Path) -> None:
    before = runs.Run.begin

    def begin(run: runs.Run, *arguments: Any, **fields: Any) -> None:
        before(run, *arguments, **fields)
        os.kill(os.getpid(), signal.SIGINT)

    with patch.object(runs.Run, "begin", begin):
        done = pe(*training(tmp_path))
    assert done.code == 130
    assert "stopped after step 0 of 40" in done.err
    assert pe(*training(tmp_path, "--resume", "--quiet")).code == 0
    assert runs.open_run(only_run(tmp_path)).info["step"] == 40


def test_in_the_last_step(tmp_path: Path) -> None:
    with signals_at(39, signal.SIGINT):
        assert pe(*training(tmp_path)).code == 0
    assert runs.open_run(only_run(tmp_path)).status == "finished"


@pytest.mark.parametrize(
    ("number", "code", "words"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_while_the_text_is_read(tmp_path: Path, number: int, code: int, words: str) -> None:
    arguments = training(tmp_path)
    with patch.object(corpus, "load", side_effect=lambda *data: os.kill(os.getpid(), number)):
        done = pe(*arguments)
    assert (done.code, done.out, done.err) == (code, "", f"error: {words}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_while_a_comparison_is_planned(tmp_path: Path) -> None:
    config = config_file(tmp_path / "a.yaml", encoding="rope")
    before = hashes(tmp_path)
    with patch.object(sources, "load_once", side_effect=lambda *data: os.kill(os.getpid(), signal.SIGINT)):
        for more in ([], ["--keep-going"]):
            done = pe("compare", config, config, "--out", tmp_path / "results", *more)
            assert (done.code, done.out, done.err) == (130, "", "error: interrupted\n")
    assert hashes(tmp_path) == before


def test_while_a_picture_is_drawn(tmp_path: Path) -> None:
    with patch.object(
        FigureCanvasAgg, "print_png", side_effect=lambda *more, **named: os.kill(os.getpid(), signal.SIGTERM)
    ):
        done = pe("plot", "alibi", "--out", tmp_path / "a.png")
    assert (done.code, done.out, done.err) == (143, "", "error: ended by SIGTERM\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_at_once_and_damages_nothing(tmp_path: Path, number: int, code: int) -> None:
    recipe = {"training__save_every": 10}
    done = pe_process(tmp_path, *training(tmp_path, "--quiet", **recipe), signals=[number, number], step=25)
    assert (done.code, done.out, done.err) == (code, "", "")
    run = runs.open_run(only_run(tmp_path))
    assert (run.status, run.load_state()[1]["step"]) == ("interrupted", 20)
    assert pe(*training(tmp_path, "--resume", **recipe)).code == 0
    assert pe(*training(tmp_path / "straight", **recipe)).code == 0
    straight = runs.open_run(only_run(tmp_path / "straight"))
    assert runs.open_run(run.path).info["weight_sha256"] == straight.info["weight_sha256"]


def test_ctrl_c_in_a_process_as_a_shell_starts_it(tmp_path: Path) -> None:
    arguments = map(str, training(tmp_path, training__steps=100_000))
    command = [sys.executable, "-m", "pe_cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        assert lines[0].startswith("training rope-")
        lines.append(process.stderr.readline())
        assert ": 10 of 100000 (0%), training: loss " in lines[1]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().splitlines()
        assert process.wait(timeout=300) == 130
        assert process.stdout.read() == ""
    assert "--resume goes on" in rest[-1]
    assert "Traceback" not in "".join(rest)
    run = runs.open_run(only_run(tmp_path))
    assert run.status == "interrupted"
    assert run.info["step"] >= 10


def test_ctrl_c_while_the_program_is_imported(tmp_path: Path) -> None:
    """Before it can have set a handler of its own."""
    script = """
import sys

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

from pe_cli.__main__ import main
sys.meta_path.insert(0, Pressed())
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
