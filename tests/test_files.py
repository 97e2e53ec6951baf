"""Whole-file writing: what a reader, a full disk and a kill may see."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealing import folder_for_all, sealed

from pe_cli import files
from pe_cli.errors import RunError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_bytes_and_text_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "first, and longer")
    files.write_text(path, "größer ∞")
    assert path.read_bytes() == b"gr\xc3\xb6\xc3\x9fer \xe2\x88\x9e"
    files.write_bytes(path, b"\r\n\x00")
    assert path.read_bytes() == b"\r\n\x00"
    assert names(tmp_path) == ["a.txt"]


def test_results_are_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files.write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o644


def test_json_is_strict(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    row = {
        "loss": math.nan,
        "all": (1.5, math.inf, [-math.inf]),
        "step": np.int64(3),
        "x": np.float32("nan"),
        4: True,
    }
    files.write_json(path, row)
    text = path.read_text(encoding="utf-8")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse) == {
        "loss": None, "all": [1.5, None, [None]], "step": 3, "x": None, "4": True,
    }  # fmt: skip
    assert text.startswith('{\n  "loss": null,\n')


def test_json_holds_any_text(tmp_path: Path) -> None:
    files.write_json(tmp_path / "a.json", {"alphabet": "\n é漢", "foreign": "\udcff"})
    data = (tmp_path / "a.json").read_bytes()
    assert "é漢".encode() in data
    assert json.loads(data) == {"alphabet": "\n é漢", "foreign": "\udcff"}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=5))
def test_csv_round_trips_any_name(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "names.csv"
    files.write_csv(path, [{"run": text, "loss": 0.1} for text in texts], ["run", "loss"])
    frame = pd.read_csv(path, keep_default_na=False, dtype={"run": str})
    assert frame["run"].tolist() == texts
    assert frame["loss"].tolist() == [0.1] * len(texts)


def test_csv_text_of_a_small_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [{"run": 'a, "b"\nc', "loss": 0.1 + 0.2}, {"run": "d", "loss": None}, {"run": "e"}]
    files.write_csv(path, rows, ["run", "loss"])
    assert path.read_bytes() == b'run,loss\n"a, ""b""\nc",0.30000000000000004\nd,\ne,\n'
    frame = pd.read_csv(path)
    assert frame["run"].tolist() == ['a, "b"\nc', "d", "e"]
    assert frame["loss"].isna().tolist() == [False, True, True]
    with pytest.raises(ValueError, match="surprise"):
        files.write_csv(path, [{"run": "a", "surprise": 1}], ["run", "loss"])
    assert len(pd.read_csv(path)) == 3


def test_link_is_replaced(tmp_path: Path) -> None:
    files.write_link(tmp_path / "latest", "a")
    files.write_link(tmp_path / "latest", "b")
    assert os.readlink(tmp_path / "latest") == "b"
    assert names(tmp_path) == ["latest"]


def test_errors_name_the_file_and_the_cause(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory" / "inner").mkdir(parents=True)
    with pytest.raises(RunError, match=r"cannot write .*/file/a\.json: .*not a directory"):
        files.write_json(tmp_path / "file" / "a.json", {})
    with pytest.raises(RunError, match=r"cannot write .*/missing/a\.json: there is no such file or directory"):
        files.write_json(tmp_path / "missing" / "a.json", {})
    with pytest.raises(RunError, match=r"cannot write .*/directory: a directory is in the way"):
        files.write_text(tmp_path / "directory", "x")
    with pytest.raises(RunError, match=r"cannot write in .*/file: a file that is not a directory is in the way"):
        files.writable(tmp_path / "file")
    assert names(tmp_path) == ["directory", "file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_named_in_words() -> None:
    path = Path("/dev/full")
    with (
        pytest.raises(RunError, match="cannot write /dev/full: no space left on the device"),
        files.failing("write", path),
    ):
        path.write_bytes(b"x" * 100)


def test_read_only_directory() -> None:
    with folder_for_all() as directory:
        files.write_text(directory / "a.txt", "old")
        with sealed(directory):
            with pytest.raises(RunError, match=rf"{directory}/a\.txt: permission denied"):
                files.write_text(directory / "a.txt", "new")
            with pytest.raises(RunError, match=f"{directory}: permission denied"):
                files.writable(directory)
        assert (directory / "a.txt").read_text() == "old"
        assert names(directory) == ["a.txt"]


def test_a_limit_on_file_sizes_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    files.write_bytes(path, b"old")
    script = f"""
import resource
from pathlib import Path
from pe_cli import files
from pe_cli.errors import RunError
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
path = Path({str(path)!r})
for act in (lambda: files.write_bytes(path, bytes(100_000)), lambda: files.writable(path.parent, size=100_000)):
    try:
        act()
    except RunError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == (
        f"cannot write {path}: no space: the file would be larger than the limit on file sizes (ulimit -f)"
    )
    assert second.startswith(f"cannot write in {tmp_path}: no space: ")
    assert done.stderr == ""
    assert names(tmp_path) == ["a.bin"]
    assert path.read_bytes() == b"old"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 65536


def test_any_interruption_removes_the_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(number: int) -> None:
        assert len(names(tmp_path)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == []


def test_only_abandoned_temporaries_are_removed_by_the_next_writer(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (".a.txt.1-00.tmp", ".a.txt.2-00.tmp", ".b.txt.3-00.tmp"))
    for path in (old, young, other):
        path.write_text("x")
    for path in (old, other):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    files.write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == [".a.txt.2-00.tmp", ".b.txt.3-00.tmp", "a.txt"]
    files.remove_temporaries(tmp_path / "a.txt")
    assert names(tmp_path) == [".b.txt.3-00.tmp", "a.txt"]


def test_temporaries_of_a_process_that_is_gone_are_removed_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    with files._temporary(tmp_path / "a.txt") as own:
        own.write_text("x")
        dead = own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-"))
        elsewhere = dead.with_name(dead.name.replace(files._HOST, "00000000"))
        for path in (dead, elsewhere):
            path.write_text("x")
        files.write_text(tmp_path / "a.txt", "x")
        assert set(names(tmp_path)) == {"a.txt", own.name, elsewhere.name}


def test_what_a_killed_probe_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from pe_cli import files
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
files.writable(Path({str(tmp_path)!r}))
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    files.writable(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("act", [lambda path: files.write_text(path, "x"), lambda path: files.write_link(path, "x")])
def test_a_new_name_is_on_the_disk_when_writing_is_over(
    act: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        sync(number)

    def replaced(old: Path, new: Path) -> None:
        done.append("name")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    act(tmp_path / "a")
    assert [step for step in done if step != "file"] == ["name", "folder"]
    assert done[0] == ("name" if (tmp_path / "a").is_symlink() else "file")


def test_the_file_of_before_is_kept_until_the_next_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, previous = tmp_path / "a", tmp_path / "a.previous"
    for text in (b"first", b"second", b"third"):
        files.write_bytes(path, text, previous)
    assert (path.read_bytes(), previous.read_bytes()) == (b"third", b"second")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match="no space left"):
            files.write_bytes(path, b"fourth", previous)
    assert (path.read_bytes(), previous.read_bytes()) == (b"third", b"second")

    def without_links(*arguments: object) -> None:
        raise OSError(errno.EPERM, "this file system has no links")

    monkeypatch.setattr(os, "link", without_links)
    files.write_bytes(path, b"fourth", previous)
    assert (path.read_bytes(), previous.read_bytes()) == (b"fourth", b"second")
    assert names(tmp_path) == ["a", "a.previous"]


WRITER = """
import sys, time
from pathlib import Path
from pe_cli import files
end = time.monotonic() + 0.7
while time.monotonic() < end:
    files.write_csv(Path(sys.argv[1]), [{"a": row, "b": "x" * 200} for row in range(200)], ["a", "b"])
"""


def test_a_reader_never_sees_a_torn_file_of_two_writers(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    files.write_csv(path, [{"a": row, "b": "x" * 200} for row in range(200)], ["a", "b"])
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(2)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        frame = pd.read_csv(path)
        assert frame.shape == (200, 2)
        assert frame["b"].iloc[-1] == "x" * 200
        reads += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert reads > 10
    assert names(tmp_path) == ["table.csv"]
