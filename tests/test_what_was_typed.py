"""What is typed twice, is unfinished or would be ignored is refused, and an error names what was typed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command_line import pe
from refusals import refuses

REFUSED: dict[str, list[str]] = {
    # two values of one key
    "config --encoding '{name: rope, base: 5}' --set encoding.base=7": [
        "--set encoding.base=7: --encoding {name: rope, base: 5} says base already; keep one of them"
    ],
    "config --set encoding='{name: rope, base: 5}' --set encoding.base=7": [
        "--set encoding={name: rope, base: 5} says"
    ],
    "config --encoding '{name: sinks, encoding: {name: rope, base: 5}}' --set encoding.encoding.base=6": ["says base"],
    "config --encoding '{name: sinks, encoding: rope}' --set encoding.encoding.name=alibi": ["says name already"],
    "config --encoding '{name: sinks, encoding: t5}' --set encoding.encoding='{name: rope}'": ["says encoding already"],
    "config --data '{task: copy, max_length: 20}' --set data.max_length=7": ["says max_length already"],
    "config --data task:copy --set data.task=sort": ["--data task:copy says task already"],
    "config --set positions='{name: shifted, shifts: 20}' --set positions.shifts=7": ["says shifts already"],
    "inspect '{name: sinusoidal, base: 7}' --set encoding.base=5": [
        "--set encoding.base=5: {name: sinusoidal, base: 7} says base already"
    ],
    "properties '{name: rope, base: 7}' rope --set encoding.base=5": ["{name: rope, base: 7} says base already"],
    "plot '{name: sinusoidal, base: 2}' sinusoidal --set encoding.base=10000": ["says base already"],
    "plot '{name: rope, base: 2}' --set encoding.base=3 --set encoding.base=2": ["--set encoding.base=3: {name: rope"],
    # what was typed is what is named
    "inspect rope --set encoding.base.x=5": ["error: --set encoding.base.x=5: encoding.base: "],
    "inspect '{name: rope, base: x}'": ["error: {name: rope, base: x}: encoding.base: "],
    "plot '{name: rope, base: x}'": ["error: {name: rope, base: x}: encoding.base: "],
    "properties '{name: rope, base: x}'": ["error: {name: rope, base: x}: encoding.base: "],
    "config --set data=nosuch": ["error: --set data=nosuch: data: "],
    "config --set encoding=ropee": ["error: --set encoding=ropee: encoding: "],
    "config --set seed=x": ["error: --set seed=x: seed: "],
    "inspect rope --set model.n_heads=2000": ["error: --set model.n_heads=2000: model.d_model: "],
    "inspect rope_partial --set model.n_heads=5 --set encoding.fraction=0.1": ["--set model.n_heads=5: encoding.frac"],
    # what was begun and not finished
    "config --encoding '{name: }'": ["--encoding {name: }: encoding.name: is empty"],
    "config --encoding '{name}'": ["encoding.name: is empty"],
    "config --encoding '{name: sliding_window, encoding: }'": ["encoding.encoding: is empty"],
    "config --encoding '{name: sliding_window, window: }'": ["encoding.window: is empty"],
    "config --encoding '{name: mix, parts: [{name: rope, base: }]}'": ["encoding.parts.0.base: is empty"],
    """config --encoding "{name: mix, parts: ['', t5]}" """: ["encoding.parts.0: is empty; write `none`"],
    """config --encoding sinks --set encoding.encoding="{name: ' '}" """: ["is empty"],
    "config --data '{task: copy, max_length: }'": ["data.max_length: is empty"],
    "inspect '{name: }'": ["error: {name: }: encoding.name: is empty"],
    "inspect rope --at-length 300 --strategy '{name: yarn, factor: }'": ["factor: is empty"],
    # what would be ignored
    "plot rope --length 4 --at-length 8": ["--length and --at-length", "give one of them"],
    "plot sinusoidal --kind table --layer 3": ["--layer 3: Table: not of a layer"],
    "plot sinusoidal --layer 1": ["--layer 1: Table and Similarity by distance: not of a layer"],
    "properties --explain --set nosuch.key=1": ["--set: --explain alone measures nothing"],
    "properties --explain --fast": ["--fast: --explain alone"],
    "config --encoding '{name: fixed, pattern: block, summary: 2}'": ["encoding.summary: changes nothing"],
    "config --encoding '{name: layered, pattern: [rope, none, t5, rope, none]}'": ["pattern: has 5 entries", "are 4"],
    # a strategy without meaning, at any length
    "inspect rope --length 4 --strategy repeat_last": ["repeat_last has no meaning for rope"],
    "plot rope --length 4 --strategy repeat_last": ["repeat_last has no meaning for rope"],
    "inspect rope --strategy wrapp": ["--strategy wrapp: 'wrapp'", "'wrap'?"],
    "plot rope --strategy none,wrapp": ["--strategy wrapp: 'wrapp'", "'wrap'?"],
    "plot rope --length 1e9": ["--length: must be a whole number from 1 to 65536"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("typed", REFUSED)
def test_refused(typed: str, folder: Path) -> None:
    refuses(folder, shlex.split(typed), *REFUSED[typed])


@pytest.mark.parametrize(
    "typed",
    [
        "config --encoding '{name: rope, base: 5}' --set encoding.base=5 --set encoding.name=Rope",
        "config --encoding rope --set encoding.base=5",
        "config --encoding '{name: sinks, encoding: rope}' --set encoding.encoding.base=5",
        "config --data task:copy --set data.max_length=7",
    ],
)
def test_one_value_in_two_places_is_no_contradiction(typed: str, folder: Path) -> None:
    done = pe(*shlex.split(typed))
    assert done.code == 0, done.err


def test_a_strategy_named_twice_is_drawn_once(folder: Path) -> None:
    done = pe("plot", "rope", "--strategy", "none,none", "--json")
    assert done.json["title"] == "rope"


@pytest.mark.parametrize("command", ["inspect", "plot"])
def test_a_strategy_that_changes_nothing_says_so(command: str, folder: Path) -> None:
    def said(*arguments: str) -> str:
        done = pe(command, *arguments, "--json")
        assert done.code == 0, done.err
        return str(done.json.get("strategy_note", done.json.get("notes")))

    assert "yarn changes nothing up to the training length 128" in said("rope", "--strategy", "yarn")
    assert "changes nothing" not in said("rope", "--strategy", "yarn", "--at-length", "129")
    assert "t5 stays as it is: repeat_last has no meaning for t5" in said(
        "{name: mix, parts: [learned, t5]}", "--strategy", "repeat_last", "--at-length", "130"
    )


def test_the_sizes_are_said(folder: Path) -> None:
    found = pe("inspect", "rope", "--set", "model.n_heads=6", "--json").json
    assert [found[key] for key in ("d_model", "n_heads", "n_layers")] == [192, 6, 4]
    assert "d model                 192" in pe("inspect", "rope", "--set", "model.n_heads=6").out


@pytest.mark.parametrize("text", ["none", "None", "null", "no", "~", "{name: ~}", "{name: none}"])
def test_no_encoding_may_be_written_in_many_ways(text: str, folder: Path) -> None:
    done = pe("config", "--json", "--encoding", text)
    assert done.code == 0, done.err
    assert done.json["experiment"]["encoding"] == {"name": "none"}


def test_of_several_values_the_last_counts() -> None:
    done = pe("config", "--json", "--set", "training.steps=3", "--seed", 1, "--set", "training.steps=4", "--seed=2")
    assert done.json["experiment"]["training"]["steps"] == 4
    assert done.json["experiment"]["seed"] == 2


def test_the_same_value_twice_is_one(folder: Path) -> None:
    done = pe("inspect", "rope", "--length", "4", "--length=4", "--json")
    assert done.code == 0, done.err
    assert done.json["length"] == 4


def test_the_length_that_is_not_used_is_said() -> None:
    done = pe("inspect", "rope", "--length", "4", "--at-length", "8", "--json")
    assert (done.code, len(done.json["positions"])) == (0, 8)
    assert "--length 4 is not used" in done.err
