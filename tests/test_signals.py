"""Ctrl-C and SIGTERM, in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pe_cli.signals import interruptible

LOOP = """
import sys, time
from pathlib import Path
from pe_cli import files
from pe_cli.signals import interruptible
with interruptible(lambda: print("restored", flush=True)) as received:
    files.write_text(Path(sys.argv[1]) / "a.txt", "whole")
    with files._temporary(Path(sys.argv[1]) / "a.txt") as temporary:
        temporary.write_text("ha")
        print("ready", flush=True)
        while received() is None:
            time.sleep(0.005)
        print("received", received(), flush=True)
        time.sleep(float(sys.argv[2]))
sys.exit(128 + received())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("twice", [False, True])
def test_first_signal_is_a_request_and_the_second_an_end(tmp_path: Path, number: int, twice: bool) -> None:
    command = [sys.executable, "-c", LOOP, str(tmp_path), "60" if twice else "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"received {int(number)}\n"
        if twice:
            process.send_signal(number)
        assert process.wait(timeout=10) == 128 + number
        assert process.stdout.read() == ("restored\n" if twice else "")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interruptible() as received:
        assert received() is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert received() == signal.SIGTERM
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_other_threads_have_no_handlers() -> None:
    seen: list[object] = []

    def work() -> None:
        before = signal.getsignal(signal.SIGINT)
        with interruptible() as received:
            seen.extend([received(), signal.getsignal(signal.SIGINT) is before])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None, True]
