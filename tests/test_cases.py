"""The list of cases is whole, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "results" / "cases.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| ")]
CASES = [row for row in ROWS if row[0].isdecimal()]
NUMBERS = [
    *(7, 13, 14, 16, 18, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35),
    *(36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54),
    *(55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72),
]


def named(cell: str) -> list[tuple[str, str]]:
    """The tests of a row, each with the file named before it."""
    found, file = [], ""
    for name in re.findall(r"`([^`]*)`", cell):
        if name.endswith(".py"):
            file = name
        elif name.startswith("test_"):
            found.append((file, name))
    return found


def test_every_case_is_there_in_its_order() -> None:
    assert [int(row[0]) for row in CASES] == NUMBERS
    assert len(NUMBERS) == 56
    assert all(len(row) == 4 for row in CASES)
    assert {row[2] for row in CASES} <= {"right", "mended", "open", "does not apply"}


@pytest.mark.parametrize("row", CASES, ids=lambda row: row[0])
def test_what_holds_a_case_is_there(row: list[str]) -> None:
    tests = named(row[3])
    assert tests or row[2] == "does not apply"
    for file, name in tests:
        path = ROOT / file
        assert path.is_file(), f"{file} of {name}"
        assert re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE), f"{name} in {file}"
