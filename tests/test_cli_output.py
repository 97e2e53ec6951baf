"""What comes out of commands: plain redirected streams, strict JSON, and help that costs nothing."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from command_line import only_run, pe, strict_json, training
from small_runs import refused

from pe_cli import cli, runs
from pe_cli.encodings import registry

COMMANDS = [
    "train",
    "extrapolate",
    "compare",
    "claims",
    "list",
    "inspect",
    "plot",
    "properties",
    "bench",
    "config",
    "sample",
]
ASK = """
import json, sys
from unittest.mock import patch
from pe_cli.cli import main
codes = []
for arguments in json.loads(sys.argv[1]):
    with patch.object(sys, "argv", ["pe", *arguments]):
        try:
            main()
        except SystemExit as end:
            codes.append(end.code)
assert codes == json.loads(sys.argv[2]), codes
"""
NOTHING_HEAVY = 'assert not {"torch", "numpy", "pandas", "scipy", "matplotlib", "rich"} & sys.modules.keys()'


# --- redirected streams


def test_redirected_output_is_plain_in_any_environment(tmp_path: Path) -> None:
    """Colours asked for, an ASCII locale, and a text, a prompt and a name that ASCII does not have."""
    (tmp_path / "text.txt").write_text("μῆνιν ἄειδε θεὰ 🏺 — Πηληϊάδεω Ἀχιλῆος\n" * 60, encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if key != "NO_COLOR"},
        "FORCE_COLOR": "1",
        "COLUMNS": "20",
        "TERM": "xterm-256color",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
        "OMP_NUM_THREADS": "1",
    }
    train = [str(argument) for argument in training(tmp_path, training__precision="float32", training__steps=20)]
    sample = ["sample", "--out", str(tmp_path), "--prompt", "θεὰ", "--chars", "40", "--greedy"]
    asked = [train, sample, [*sample, "--json"], [*train, "--set", "name=Ἰλιάς"], ["train", "--help"]]
    command = [sys.executable, "-c", ASK, json.dumps(asked), "[0, 0, 0, 2, 0]"]
    done = subprocess.run(command, env=environment, capture_output=True)
    for stream in (done.stdout, done.stderr):
        assert not set(stream) & {0x1B, 0x0D}
        assert b"Traceback" not in stream
        assert stream.isascii()
    run = only_run(tmp_path)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert out.startswith(f"{run}\nvalidation loss ")
    assert out.splitlines()[2].startswith(r"\u03b8\u03b5\u1f70")
    told = strict_json(out[out.index("\n{") : out.index("\n}") + 3])
    assert (told["prompt"], told["run"], len(told["text"])) == ("θεὰ", run.name, 40)
    assert set(told["text"]) <= set(runs.open_run(run).info["alphabet"])
    assert out.rstrip().endswith("  Example: pe train --encoding alibi --seed 7 --set training.steps=200")
    refusal = (
        r"error: name '\u1f38\u03bb\u03b9\u03ac\u03c2' cannot be the name of a directory here, where names are ascii"
    )
    assert refusal in err.splitlines()
    assert len(err.splitlines()) == 6  # three of training, the run's name twice, and the refusal


# --- JSON


def test_json_is_alone_on_standard_output(tmp_path: Path) -> None:
    trained = pe(*training(tmp_path, "--json", training__steps=2))
    commands: list[tuple[list[Any], set[str]]] = [
        (["config", "--json"], {"experiment", "origins"}),
        (["list", "--json"], {"encodings", "positions", "strategies", "corpora", "tasks"}),
        (["inspect", "alibi", "--length", 4, "--json"], {"encoding", "family", "options", "parameters", "slopes"}),
        (["sample", "--out", tmp_path, "--chars", 5, "--json"], {"run", "prompt", "text"}),
        (training(tmp_path, "--dry-run", "--json"), {"experiment", "directory", "parameters", "groups"}),
    ]
    assert trained.json["status"] == "finished"
    for arguments, keys in commands:
        done = pe(*arguments)
        assert done.code == 0, arguments
        assert keys <= done.json.keys(), arguments
    for what in ("encodings", "positions", "strategies", "corpora", "tasks"):
        done = pe("list", what, "--json")
        assert done.err == ""
        assert isinstance(done.json, list)
        assert all(row["name"] for row in done.json)


# --- help


def test_help_and_version_import_nothing_heavy() -> None:
    asked = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    command = [sys.executable, "-c", ASK + NOTHING_HEAVY, json.dumps(asked), json.dumps([0] * len(asked))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"pe {cli.__version__}\n" in done.stdout


def test_a_list_waits_for_no_library_of_numbers() -> None:
    check = 'assert not {"pandas", "scipy", "matplotlib"} & sys.modules.keys(), "imported"'
    done = subprocess.run([sys.executable, "-c", ASK + check, '[["list"]]', "[0]"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_training_waits_for_no_statistics(tmp_path: Path) -> None:
    asked = [[str(word) for word in training(tmp_path)]]
    check = 'assert "scipy.stats" not in sys.modules and "matplotlib" not in sys.modules, "imported"'
    command = [sys.executable, "-c", ASK + check, json.dumps(asked), "[0]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_command_is_listed_here() -> None:
    assert sorted(command_of(name) or "" for name in COMMANDS) == sorted(COMMANDS)
    listed = pe("--help").out
    assert sorted(click_commands()) == sorted(COMMANDS)
    assert all(f"\n  {name} " in listed for name in COMMANDS)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_ends_with_an_example_that_the_command_takes(name: str, tmp_path: Path) -> None:
    done = pe(*([name] if name else []), "--help")
    assert (done.code, done.err) == (0, "")
    last = done.out.rstrip().splitlines()[-1].strip()
    assert last.startswith("Example: pe ")
    example = shlex.split(last.removeprefix("Example: pe "))
    if name:
        assert example[0] == name
    command = click_commands()[example[0]]
    command.make_context(example[0], example[1:])  # a usage error would be an exception


def click_commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(cli.app)
    return dict(group.commands)


def command_of(name: str) -> str | None:
    return click_commands()[name].name


def test_no_command_shows_help() -> None:
    done = pe()
    assert "Commands" in done.out + done.err
    assert "Traceback" not in done.err


def test_an_unknown_command_is_refused() -> None:
    done = pe("trian")
    assert (done.code, done.out) == (2, "")
    assert "trian" in done.err


# --- config


def test_config_says_where_every_value_is_from(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("encoding: {name: rope, base: 1e3}\ntraining: {steps: 1_000}\n")
    done = pe("config", file, "--set", "training.batch_size=2", "--seed", 5)
    assert done.code == 0
    lines = [line.strip() for line in done.out.splitlines()]
    assert {"steps: 1000  # file", "batch_size: 2  # command line", "seed: 5  # command line"} <= set(lines)
    assert {"base: 1000.0  # file", "name: mine  # default", "length: 128  # default"} <= set(lines)
    (tmp_path / "resolved.yaml").write_text(done.out)
    told = pe("config", file, "--set", "training.batch_size=2", "--seed", 5, "--json").json
    assert pe("config", tmp_path / "resolved.yaml", "--json").json["experiment"] == told["experiment"]
    assert yaml.safe_load(done.out) == told["experiment"]
    assert told["origins"]["training.batch_size"] == "command line"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.yaml", "resolved.yaml"]


def test_config_refuses_what_train_refuses(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("training:\n  stpes: 3\n")
    refused(pe("config", file), "mine.yaml", "stpes", "steps")


# --- list and inspect


def test_list_names_every_encoding_with_its_options() -> None:
    done = pe("list", "encodings")
    assert (done.code, done.err) == (0, "")
    for name in registry.names():
        [line] = [line for line in done.out.splitlines() if line.split()[:1] == [name]]
        for option, field in registry.encoding_class(name).Options.model_fields.items():
            assert f"{option}: " in line, (name, field)
    refused(pe("list", "encodngs"), "encodngs", "did you mean 'encodings'?")


def test_inspect_shows_the_slopes_of_alibi() -> None:
    told = pe("inspect", "ALiBi", "--length", 4, "--set", "model.n_heads=8", "--json").json
    assert told["slopes"] == [2.0**-power for power in range(1, 9)]
    assert told["bias"][0] == [[0, None, None, None], [-0.5, 0, None, None], [-1, -0.5, 0, None], [-1.5, -1, -0.5, 0]]
    shown = pe("inspect", "alibi", "--length", 4, "--set", "model.n_heads=8")
    assert (shown.code, shown.err) == (0, "model.d_model: 256, so that a head has 32 columns\n")
    assert "0.00390625" in shown.out
    refused(pe("inspect", "alibbi"), "alibbi", "did you mean 'alibi'?")
    refused(pe("inspect", "alibi", "--length", "0"), "--length", "from 1", "'0'")


# --- sample


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    assert pe(*training(folder, encoding="learned")).code == 0
    return folder


def test_sample_goes_on_with_the_prompt(learned: Path) -> None:
    greedy = ["sample", "--out", learned, "--prompt", "the cat", "--chars", 8, "--greedy"]
    done = pe(*greedy)
    assert done.code == 0
    assert done.out.startswith("the cat")
    assert len(done.out) == len("the cat") + 8 + 1
    assert done.err == f"run: {learned / 'runs' / only_run(learned).name}\n"
    assert pe(*greedy, only_run(learned)).out == done.out
    assert pe(*greedy, only_run(learned)).err == ""
    assert pe(*greedy, only_run(learned).name, "--json").json["text"] == done.out[7:-1]


def test_sample_past_the_end_of_a_learned_table_says_so(learned: Path) -> None:
    said = (
        "the learned table has 16 rows, for the ids 0 to 15; the text asks for id 16: "
        "from now on the model sees the last 16 characters"
    )
    within = pe("sample", "--out", learned, "--prompt", "the cat", "--chars", 10)  # the last is made from 16
    beyond = pe("sample", "--out", learned, "--prompt", "the cat", "--chars", 11)
    assert said not in within.err
    assert beyond.err.count(said) == 1
    assert (beyond.code, len(beyond.out)) == (0, 19)


def test_what_was_written_before_the_model_cannot_go_on_is_shown(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{number} " for number in range(10, 100)) * 20, encoding="utf-8")
    abacus = "{name: mix, parts: [rope, {name: abacus, longest: 2, max_offset: 0}]}"
    folder = training(tmp_path, encoding=abacus, training__steps=0)
    assert pe(*folder).code == 0
    sample = ["sample", only_run(tmp_path), "--chars", 400, "--prompt", "12 "]
    done, as_json = pe(*sample), pe(*sample, "--json")
    assert done.code == as_json.code == 1
    written = done.out.removeprefix("12 ").removesuffix("\n")
    assert 3 <= len(written) < 400
    assert written[-3:].isdigit()
    why = "the model cannot read what it has written: the abacus table has 3 rows"
    assert f"the text stops after {len(written)} of 400 characters: {why}" in done.err
    assert as_json.json["text"] == written
    assert as_json.json["stopped"].startswith(why)
    assert pe("sample", only_run(tmp_path), "--chars", 1, "--prompt", "12 ", "--json").json["stopped"] is None
    refused(pe("sample", only_run(tmp_path), "--prompt", "123"), "--prompt: the model cannot read it: the abacus table")


def test_sample_refuses(learned: Path, tmp_path: Path) -> None:
    sample = ["sample", "--out", learned]
    refused_prompt = pe(*sample, "--prompt", "the dog, zz")
    assert refused_prompt.code == 2
    assert "'z' U+007A (2 times)" in refused_prompt.err
    assert pe(*sample, "--temperature", "0").code == 2
    assert pe(*sample, "--chars", "0").code == 2
    refused(pe("sample", "--out", tmp_path), "there is no", "train one with `pe train`")
    refused(pe(*sample, "nothing"), "nothing is not there", only_run(learned).name)
