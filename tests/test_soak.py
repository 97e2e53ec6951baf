"""A few kills of the experiment that makes many."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "experiments" / "soak.py"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells processes by /proc")
def test_a_few_kills_change_nothing() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--kills", "3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\* 3 kills, rounds: \d, 3 survived", done.stdout), done.stdout  # some moments come too late
    assert "final weights equal: yes" in done.stdout
    assert "none left behind: yes" in done.stdout
