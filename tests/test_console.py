"""What reaches the two streams: whole and plain in a file, drawn on a terminal, never a reason to fail."""

from __future__ import annotations

import io
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pe_cli.console import Console
from pe_cli.errors import RunError
from pe_cli.streams import quiet_pipe
from pe_cli.tables import Column, Grid

NAME = "rope-[bold]base[/bold]-0123456789-0123456789-0123456789-s1337"
INHERITED = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
COLUMNS = [
    Column("run", "run"),
    Column("length", "length"),
    Column("loss", "loss", ".4f"),
    Column("gain", "gain over the training length", lambda gain: f"{gain:+.3f}"),
    Column("status", "status"),
]
ROWS = [
    {"run": NAME, "length": 128, "loss": 1.23456, "gain": 0.0, "status": "ok"},
    {"run": "日本語", "length": np.int64(4096), "loss": math.nan, "gain": None, "status": "undefined"},
    {"run": "a\nb\x1b[31m\r", "length": 256, "loss": np.float32(12.5), "status": "ok"},
]
SHOW = """
import sys
from pe_cli.console import Console
from pe_cli.tables import Column
console = Console()
rows = [dict(run="rope-[b]-0123456789-0123456789-0123456789-s1", a=1.2345678, b=2.25, c=3.25, n=4096)] * 2
columns = [Column("run", "run"), Column("n", "length"), *(Column(k, k + " as text", ".7f") for k in "abc")]
console.table(rows, columns, "Title [x]", ["note [y] " + "word " * 20])
with console.display("runs", 2) as display:
    for step in range(0, 3001):
        display.update("rope-s1", step, 3000, "loss 1.83")
    display.finish("rope-s1", "rope-s1 [z]: finished")
console.error("what [/red] is wrong")
"""


def piped(code: str, **environment: str) -> tuple[str, str]:
    """What a process writes to its two pipes."""
    command, environment = [sys.executable, "-c", code], {**INHERITED, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    return done.stdout.decode(), done.stderr.decode()


def on_terminal(code: str, columns: int, *signals: int, **environment: str) -> tuple[str, int]:
    """What a process writes to the terminal that both its streams are; `signals` follow the word READY."""
    leader, follower = pty.openpty()
    environment = {
        **INHERITED,
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
        "LINES": "30",
        **environment,
    }
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, env=environment, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            seen += os.read(leader, 4096)
        except OSError:  # Linux says so at the end of a terminal
            break
        while signals and b"READY" in seen:
            process.send_signal(signals[0])
            signals = signals[1:]
            time.sleep(0.1)
    os.close(leader)
    return seen.decode().replace("\r\n", "\n"), process.wait()


def without_codes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_results_are_given_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    line = "  [red]no markup[/red] :smile: " + "x" * 500 + " \\[ "
    Console().result(line)
    assert capsys.readouterr() == (line + "\n", "")


HOSTILE = "a\x1b]0;title\x07b\x1b[8mc\u202ed"
HARMLESS = "a\\x1b]0;title\\x07b\\x1b[8mc\\u202ed"


def test_a_terminal_obeys_nothing_that_stands_in_a_text() -> None:
    """What a model writes, and names of files and folders, in results, titles and notes."""
    code = f"""
from pe_cli.console import Console
from pe_cli.tables import Column
console, hostile = Console(), {HOSTILE!r}
console.result("result " + hostile + "\\n\\tline")
console.table([{{"a": hostile}}], [Column("a", "head")], title="title " + hostile, notes=["note " + hostile])
console.note(hostile)
"""
    seen, code_ = on_terminal(code, 200)
    assert code_ == 0
    assert HOSTILE not in seen
    assert not {"\x07", "\u202e"} & set(seen)
    assert not {"\x1b]", "\x1b[8m"} & {seen[at : at + size] for at in range(len(seen)) for size in (2, 4)}
    assert f"result {HARMLESS}\n\tline" in seen.expandtabs() or f"result {HARMLESS}\n" in seen
    assert seen.count(HARMLESS) == 5


def test_tables_have_no_codes_in_a_redirected_stream_either(capsys: pytest.CaptureFixture[str]) -> None:
    Console().table([{"a": HOSTILE}], [Column("a", "head")], title=HOSTILE, notes=[HOSTILE])
    assert capsys.readouterr().out.count(HARMLESS) == 3


def test_messages_go_to_stderr_and_quiet_spares_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        console = Console(quiet)
        console.note("a [note]")
        console.warn("a [b]")
        console.error("/a[1]/b: line 1\nline 2 \x1b[2J\r")
    out, err = capsys.readouterr()
    said = "warning: a [b]\nerror: /a[1]/b: line 1\nline 2 \\x1b[2J\\r\n"
    assert (out, err) == ("", "a [note]\n" + said + said)


def test_plain_table(capsys: pytest.CaptureFixture[str]) -> None:
    Console().table(ROWS, COLUMNS, title="Title [a]", notes=["Note [b]"])
    width = len(NAME)
    assert capsys.readouterr().out.splitlines() == [
        "Title [a]",
        f"{'run':{width}}  length     loss  gain over the training length  status",
        f"{'-' * width}  ------  -------  -----------------------------  ---------",
        f"{NAME}     128   1.2346                         +0.000  ok",
        f"{'日本語':{width - 3}}    4096        -                              -  undefined",
        f"{'a' + chr(92) + 'nb' + chr(92) + 'x1b[31m' + chr(92) + 'r':{width}}     256  12.5000"
        "                              -  ok",
        "Note [b]",
    ]


def test_a_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Console().table([], [Column("a", "one"), Column("b", "two")])
    assert capsys.readouterr().out == "one  two\n---  ---\n"


FORCED = {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "1", "COLUMNS": "300"}


@pytest.mark.parametrize("environment", [{"COLUMNS": "20"}, FORCED, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_redirected_streams_are_whole_and_plain(environment: dict[str, str]) -> None:
    out, err = piped(SHOW, **environment)
    assert not re.search(r"[\x1b\r]", out + err)
    lines = out.splitlines()
    name = "rope-[b]-0123456789-0123456789-0123456789-s1"
    assert lines[3] == lines[4] == f"{name}    4096  1.2345678  2.2500000  3.2500000"
    assert not any(line.endswith(" ") for line in lines[1:-1])
    assert err.splitlines() == [
        "rope-s1: 0 of 3000 (0%), loss 1.83",
        "rope-s1: 3000 of 3000 (100%), loss 1.83",
        "rope-s1 [z]: finished",
        "error: what [/red] is wrong",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_on_a_terminal_names_fold_and_numbers_stay(width: int) -> None:
    text, code = on_terminal(SHOW, width)
    assert code == 0
    lines = without_codes(text[: text.index("note [y]")]).splitlines()
    for number in ("4096", "1.2345678", "2.2500000", "3.2500000"):
        assert number in " ".join(lines)
    if width >= 40:  # below, a name and a number do not fit
        assert max(map(len, lines)) <= width
    assert ("rope-[b]-0123456789-0123456789-0123456789-s1" in " ".join(lines)) == (width == 200)


def test_columns_that_do_not_fit_come_in_a_second_part_with_the_keys() -> None:
    columns = [["run", "rope-s1"], ["length", "4096"], ["loss", "1.234567890"], ["bits", "1.781098765"]]
    parts = Grid(columns, [False, True, True, True], keys=2).parts(30)
    assert [[cells[0] for cells in part.columns] for part in parts] == [
        ["run", "length", "loss"],
        ["run", "length", "bits"],
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("text", ["α é 😀 \ud8ff", "plain", "é"])
def test_any_encoding_prints_everything_and_json_stays_json(
    monkeypatch: pytest.MonkeyPatch, encoding: str, text: str
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding, errors="strict"))
    console = Console()
    console.result(text)
    console.table([{"a": text}], [Column("a", "α")])
    assert written.getvalue().count(b"\n") == 4
    written.seek(0)
    written.truncate()
    console.json({"name": text, "loss": math.inf, "gain": np.float64(0.5), "rows": (1,)})
    assert json.loads(written.getvalue().decode("utf-8")) == {
        "name": text, "loss": None, "gain": 0.5, "rows": [1]
    }  # fmt: skip


def test_ascii_terminal_has_ascii_rules() -> None:
    text, code = on_terminal(SHOW, 100, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert code == 0
    assert text.isascii()
    assert "-" * 80 in text


def test_no_colour_on_a_terminal_that_asks_for_none() -> None:
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", on_terminal(SHOW, 100)[0])
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", on_terminal(SHOW, 100, NO_COLOR="1")[0])


def test_a_dumb_terminal_gets_lines() -> None:
    text, _ = on_terminal(SHOW, 100, TERM="dumb")
    assert not re.search(r"[\x1b\r]", text)
    assert "rope-s1: 3000 of 3000 (100%), loss 1.83\n" in text


def test_a_reader_that_leaves_does_not_stop_the_work() -> None:
    code = """
import sys
from pe_cli.console import Console
from pe_cli.streams import quiet_pipe
with quiet_pipe():
    console = Console()
    for i in range(20000):
        console.result(f"line {i}")
        console.note(f"note {i}")
    open(sys.argv[1], "w").write("done")
"""
    leave = f'"$0" -c "$1" /dev/fd/3 3>&1 >/dev/null | head -1; "$0" -c "$1" {os.devnull} 2>&1 | head -2'
    done = subprocess.run(
        ["bash", "-c", f"set -e -o pipefail; {leave}", sys.executable, code], capture_output=True, check=True
    )
    assert done.stdout == b"done" + b"line 0\nnote 0\n"
    assert done.stderr.count(b"\n") == 20000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_results_that_cannot_be_written_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as out, open("/dev/full", "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        console = Console()
        with console.display() as display:
            display.update("a", 1, 2)
        console.error("unheard")
        with pytest.raises(RunError, match="cannot write to standard output: No space left"):
            console.result("a number")
        console.result("after that nothing more")


def test_closed_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with quiet_pipe():
        Console().result("nowhere")
        Console().error("nowhere")


LIVE = """
import signal, sys, time, warnings
from pe_cli.console import Console
from pe_cli.signals import interruptible
console = Console()
with interruptible(before_exit=console.restore) as received, console.display("runs", 2) as display:
    display.update("rope-[b]-s1", 1, 4, "loss 1.83")
    time.sleep(0.3)
    console.result("a [result] READY")
    while sys.argv[1:] == [] and {waits}:
        time.sleep(0.01)
    display.note("a [note]")
    display.finish("rope-[b]-s1", "over")
    time.sleep(0.3)
    {then}
"""


def test_bars_come_and_go_and_leave_the_cursor() -> None:
    text, code = on_terminal(LIVE.format(waits=False, then=""), 80)
    assert code == 0
    bars = [line for line in without_codes(text).splitlines() if "━" in line]
    assert re.match(r"\r*rope-\[b\]-s1  [━╸╺]+ +25%  loss 1\.83 *$", bars[0])
    assert re.match(r"\r*runs +[━╸╺]+ +12%  0 of 2", bars[1])
    assert re.match(r"\r*runs +[━╸╺]+ +50%  1 of 2 +0:00:0\d", bars[-1])
    for line in ("a [result] READY\n", "a [note]\n", "over\n"):
        assert line in without_codes(text)
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_an_exception_leaves_the_cursor() -> None:
    text, code = on_terminal(LIVE.format(waits=False, then="raise RuntimeError('boom')"), 80)
    assert code == 1
    assert text.endswith("RuntimeError: boom\n")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_the_second_signal_leaves_the_cursor() -> None:
    text, code = on_terminal(LIVE.format(waits=True, then=""), 80, signal.SIGINT, signal.SIGINT)
    assert code == 130
    assert text.endswith("\n\x1b[?25h")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (math.nan, "-"), (np.float32("nan"), "-"), (math.inf, "inf"), (1.5, "1.50"),
        (np.float64(2.0), "2.00"), (3, "3.00"), ("diverged", "diverged"), (True, "True"),
    ],
)  # fmt: skip
def test_values_as_text(value: Any, text: str) -> None:
    assert Column("a", "a", ".2f").text(value) == text
