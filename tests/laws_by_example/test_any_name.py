"""Whatever somebody calls a run: one directory in results/runs that is its alone, or a refusal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from by_example import examples
from hypothesis import given
from hypothesis import strategies as st
from watched import audited

from pe_cli import options, runs
from pe_cli.config import Experiment, resolve
from pe_cli.errors import ConfigError, PeError
from pe_cli.plotting import file_name

STRANGE = [
    "", " ", ".", "..", "...", "a/b", "/", "../x", "..\\x", "a\0b", "a\nb", "a\rb", "\x1b[31m", "\x7f", "\u2028",
    "\u200b", "\u202eepor", "\ufeff", "\ud800", "\udcff", "CON", "nul", "aux.txt", "COM1", "a:b", "a*?", "<a>|b", '"',
    "'", "$HOME", "~", "~root", "-x", "--force", "[red]", "{a}", "%s", "a ", "a.", "latest", ".locks", "run.json",
    "runs", "💥", "e\u0301", "é", "a" * 100, "a" * 101, "é" * 50, "é" * 51, "a" * 300, "💥" * 25, "💥" * 26, "a-s1",
    "a-0123456789-s1", "1e3", "007",
]  # fmt: skip
names = st.sampled_from(STRANGE) | st.text(st.characters(), max_size=60) | st.text("ab-s01./\\ ~", max_size=8)
hashes = st.text("0123456789abcdef", min_size=10, max_size=10)
seeds = st.integers(0, 2**63 - 1)


def named(name: str) -> Experiment | None:
    """The experiment of this name, whichever way it is said; None where it is refused."""
    try:
        found = resolve(None, options.overrides([f"name={name}"], None, None, None)).experiment
    except ConfigError:
        assert not (name.isalnum() and len(name.encode()) <= 100), "letters and digits are a name"
        return None
    assert found.name == name
    return found


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("names") / "out"


@examples(300)
@given(names, hashes, seeds)
def test_a_name_is_one_file_name_or_refused(name: str, identity: str, seed: int) -> None:
    if named(name) is None:
        return
    directory = runs.run_directory_name(name, identity, seed)
    root = Path("results/runs")
    assert (root / directory).parent == root
    assert os.path.normpath(root / directory) == str(root / directory)
    assert directory not in ("", ".", "..")
    assert "/" not in directory
    assert "\0" not in directory
    for beside in (directory, f"{directory}.lock"):
        assert len(os.fsencode(beside)) <= 255


@examples(150)
@given(st.lists(st.tuples(names, hashes, seeds), min_size=2, max_size=6, unique=True))
def test_two_trainings_never_share_a_directory(trainings: list[tuple[str, str, int]]) -> None:
    """Names that end as directories do, too: the hash and the seed are read from the end."""
    kept = [training for training in trainings if named(training[0]) is not None]
    found = [runs.run_directory_name(*training) for training in kept]
    assert len(set(found)) == len(kept)


@examples(60)
@given(names, hashes, seeds)
def test_a_run_is_made_in_its_folder_and_nowhere_else(out: Path, name: str, identity: str, seed: int) -> None:
    root = out / "runs"
    with audited(out) as strange:
        try:
            with runs.create(root, name, identity, seed, force=True, resume=False) as run:
                run.begin("name: x\n", name=name)
                runs.point_latest(run)
        except PeError:
            assert named(name) is None, "what a config takes can be made"
            return
    assert strange == []
    assert run.path.parent == root
    assert run.path.name in os.listdir(root)
    assert runs.newest(root).path == run.path
    assert runs.open_run(run.path, root).text("name") == name


@examples(200)
@given(st.lists(names, max_size=4))
def test_a_picture_has_a_file_name_of_its_own_folder(parts: list[str]) -> None:
    found = file_name(parts)
    assert found.isascii()
    assert 0 < len(found) <= 150
    assert not found.startswith(".")
    assert Path(f"x/{found}.png").parent == Path("x")
