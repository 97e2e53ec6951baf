"""README says what is so: its commands exist, its tables are those of results/."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from pe_cli.catalogue import catalogue
from pe_cli.cli import app
from pe_cli.config import resolve
from pe_cli.listing import listed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("pe ")]
LISTS = dict(re.findall(r"<!-- pe list (\w+) --markdown -->\n(.*?)<!-- end -->", README, re.DOTALL))
CONFIGS = sorted(set((ROOT / "configs").glob("**/*.yaml")) - set((ROOT / "configs" / "claims").glob("*.yaml")))


def test_two_commands_set_everything_up() -> None:
    set_up = [line for block in BLOCKS for line in block.splitlines() if "venv " in line]
    assert len(set_up) == 2
    assert "pe compare configs/*.yaml --quick" in set_up[0]
    assert set_up[1].endswith("pytest")
    assert all("-c constraints.txt" in line for line in set_up)


def test_the_cosines_of_two_bases_are_those_of_the_formula() -> None:
    """Of two rows n ids apart: the mean of cos(n base^(-2i/d)) over the pairs of columns i, here over n as well."""
    found = []
    for base in (1000, 10000):
        cosines = [math.cos(n * base ** (-i / 64)) for n in range(20, 128) for i in range(64)]
        found.append(f"{sum(cosines) / len(cosines):.2f}")
    said = "mean over the distances from 20 to 127 is {}, and {} with base 10000"
    assert said.format(*found) in README


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_readme_are_understood(command: str) -> None:
    name, *arguments = shlex.split(command)[1:]
    group = typer.main.get_command(app)
    commands = getattr(group, "commands")  # noqa: B009 (typer brings its own click, which has no types)
    commands[name].make_context(name, arguments)


def test_tables_of_the_readme_are_those_of_the_results() -> None:
    listed_ones = "".join(LISTS.values())
    rows = [line for line in README.splitlines() if line.startswith("|") and line not in listed_ones]
    published = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "results").glob("*/*.md"))
    assert rows
    assert [line for line in rows if line not in published] == []


def test_losses_in_the_text_of_the_readme_are_those_of_the_results() -> None:
    """All with three decimals; 1.617 is what one command prints, and the README says which."""
    text = "\n".join(line for line in README.splitlines() if not line.startswith("|"))
    published = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "results").glob("**/*.md"))
    figure = re.compile(r"(?<![\d.])\d+\.\d{3}(?!\d)")
    assert len(figure.findall(text)) > 30
    assert set(figure.findall(text)) - set(figure.findall(published)) == {"1.617"}


@pytest.mark.parametrize("kind", ["encodings", "strategies", "tasks"])
def test_a_list_in_the_readme_is_what_the_command_prints(kind: str) -> None:
    printed = listed(kind, catalogue(kind)[kind]).markdown()
    assert LISTS[kind].strip() == printed.partition("\n\n")[2].strip()


def test_what_the_readme_links_to_is_there() -> None:
    links = re.findall(r"(?<!!)\[[^]]*\]\(([^)]*)\)", README)
    assert links
    assert [name for name in links if not (ROOT / name).exists()] == []


def test_pictures_of_the_readme_are_there() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    assert [name for name in pictures if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_opens_with_its_command(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(f"# pe train {path.relative_to(ROOT).as_posix()}")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_resolves(path: Path) -> None:
    assert resolve(path, {}).experiment.name == path.stem
