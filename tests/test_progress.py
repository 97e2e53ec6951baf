"""Progress: lines at a bounded rate, and what the bars hold. Terminals themselves are in test_console.py."""

from __future__ import annotations

import io
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pe_cli import progress
from pe_cli.console import Console, terminal
from pe_cli.progress import Bars, Row, clock, drawn, shortened
from pe_cli.streams import Stream


class Clock:
    """The time that `progress` sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def test_lines_come_at_a_bounded_rate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = Clock(monkeypatch)
    with Console().display("runs", 2) as display:
        for step in range(0, 1001, 10):  # 0.4 seconds each: 40 in all
            display.update("a", step, 1000, "loss 1.5")
            display.update("b", 5, 10, seconds_left=3600.0)
            now.now += 0.4
        display.update("a", 1000, 1000, "loss 1.5")
        display.note("a [note]")
        display.finish("a", "a: done")
        display.finish("b")
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("a")] == [
        "a: 0 of 1000 (0%), loss 1.5",
        "a: 250 of 1000 (25%), loss 1.5, 0:00:30 left",
        "a: 500 of 1000 (50%), loss 1.5, 0:00:20 left",
        "a: 750 of 1000 (75%), loss 1.5, 0:00:10 left",
        "a: 1000 of 1000 (100%), loss 1.5",
        "a [note]",
        "a: done",
    ]
    assert [line for line in lines if line.startswith("b")] == ["b: 5 of 10 (50%), 1:00:00 left"] * 5


def test_a_new_total_starts_the_pace_anew(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = Clock(monkeypatch)
    with Console().display() as display:
        display.update("a", 500, 1000)  # resumed: what was done before says nothing about the pace
        now.now += 20.0
        display.update("a", 600, 1000)
        now.now += 20.0
        display.update("a", 0, 4)
        now.now += 20.0
        display.update("a", 1, 4)
    assert [line.split(", ")[1:] for line in capsys.readouterr().err.splitlines()] == [
        [], ["0:01:20 left"], [], ["0:01:00 left"]
    ]  # fmt: skip


def test_quiet_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with Console(quiet=True).display("runs", 3) as display:
        display.update("a", 1, 2)
        display.note("a note")
        display.finish("a", "done")
    assert capsys.readouterr() == ("", "")


def test_display_takes_many_threads(capsys: pytest.CaptureFixture[str]) -> None:
    with Console().display("runs", 8) as display:

        def work(key: str) -> None:
            for step in range(101):
                display.update(key, step, 100)
            display.finish(key, f"{key}: done")

        threads = [threading.Thread(target=work, args=(f"run{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 * 8
    assert sorted(line for line in lines if "done" in line) == [f"run{n}: done" for n in range(8)]


def test_more_bars_than_the_terminal_has_lines() -> None:
    screen = terminal(Stream(io.StringIO(), holds_results=False), width=80)
    screen.height = 10
    bars = Bars(lambda text: None, screen, "runs", 50)
    for n in range(50):
        bars.update(f"run{n}", 1, 2)
    table = bars.render()
    assert table.row_count == 8
    assert list(table.columns[0].cells)[-1].plain == "runs"  # type: ignore[union-attr]


@given(
    st.integers(40, 200),
    st.text("abc日", max_size=60),
    st.sampled_from(["", "loss 1.83  9k chars/s"]),
)
def test_bars_fit_the_width(width: int, name: str, detail: str) -> None:
    screen = terminal(Stream(io.StringIO(), holds_results=False), width=width)
    table = drawn([Row(name, 0.5, detail, 12.0), Row("b", 1.0, "", None)], width)
    assert screen.measure(table).maximum <= width


def test_names_keep_both_ends() -> None:
    assert shortened("rope-0123456789-s1337", 30) == "rope-0123456789-s1337"
    assert shortened("rope-0123456789-s1337", 14) == "rope-0..-s1337"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00:00"), (83.0, "0:01:23"), (359999.6, "100:00:00")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
