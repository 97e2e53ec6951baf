"""No file with published numbers lies unused: a test compares it, or it is listed here with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from reference_cases import Case, all_cases, folder

NOT_BUILT = {
    "rope_ntk_by_parts": "the first program of that name blends three schedules with constants of its own; ours is the "
    "formula of the YaRN paper, whose numbers are in rope_yarn",
}

FIELDS, RUN = {"fields", "sized_fields"}, {"run", "run_sized"}


def compared_in(source: str) -> set[str]:
    """The names that the tests of a file compare all fields of.

    Such a test takes its parameters from `fields("name", …)` and does nothing but `run` the comparison, which
    fails for a field that has none.
    """
    found: set[str] = set()
    for test in ast.parse(source).body:
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_") and called(test.body[-1]) in RUN:
            calls = [
                node for decorator in test.decorator_list for node in ast.walk(decorator) if called(node) in FIELDS
            ]
            found |= {str(ast.literal_eval(call.args[0])) for call in calls if isinstance(call, ast.Call)}
    return found


def called(node: ast.AST) -> str | None:
    """The name of the function that an expression calls."""
    call = node.value if isinstance(node, ast.Expr) else node
    return call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None


def compared() -> set[str]:
    files = sorted(Path(__file__).parent.glob("test_reference_*.py"))
    return set().union(*(compared_in(path.read_text(encoding="utf-8")) for path in files))


def test_reference_folder_has_files() -> None:
    assert all_cases(), f"there is no file with numbers in {folder()}"


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.path.stem)
def test_reference_file_is_compared_or_listed(case: Case) -> None:
    known = compared() | NOT_BUILT.keys()
    assert case.names & known, f"{case.path.name} is neither compared by a test nor listed with a reason"


def test_reference_list_names_nothing_that_is_compared() -> None:
    assert compared() & NOT_BUILT.keys() == set(), "what is compared needs no reason"


def test_reference_tests_are_found_by_their_name() -> None:
    files = {path.name for path in Path(__file__).parent.glob("*.py")}
    assert {name for name in files if not name.startswith("test_reference_")} == set()


DECORATED = '@pytest.mark.parametrize(("case", "field"), fields("cable", NOT_COMPARED))\n'


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (DECORATED + "def test_cable(case, field):\n    run(COMPARISONS, case, field)", {"cable"}),
        (DECORATED + "def cable(case, field):\n    run(COMPARISONS, case, field)", set()),
        (DECORATED + "def test_cable(case, field):\n    pass", set()),
        ('for case in cases("cable"):\n    pass', set()),
        ('"""fields("cable", NOT_COMPARED)"""', set()),
    ],
)
def test_reference_counts_as_compared_only_in_a_test_that_runs(source: str, names: set[str]) -> None:
    assert compared_in(source) == names
