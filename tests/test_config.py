"""An experiment from a file and the command line: what is understood, what is refused and in which words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pe_cli.config import (
    Experiment,
    Resolved,
    doubled_lengths,
    load_experiment,
    resolve,
    to_yaml,
    training_identity,
    with_evaluation,
)
from pe_cli.errors import ConfigError

Resolver = Callable[..., Resolved]


@pytest.fixture
def resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resolver:
    """Resolves a text as `exp.yaml` in the working directory, with overrides by dotted key."""
    monkeypatch.chdir(tmp_path)

    def resolve_text(text: str, overrides: Mapping[str, str | int | None] | None = None) -> Resolved:
        Path("exp.yaml").write_text(text, encoding="utf-8")
        return resolve(Path("exp.yaml"), overrides or {})

    return resolve_text


@pytest.fixture
def refusal(resolved: Resolver) -> Callable[..., str]:
    """The message with which a text or an override is refused."""

    def message(text: str, overrides: Mapping[str, str | int | None] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            resolved(text, overrides)
        assert len(str(caught.value).splitlines()) <= 15
        return str(caught.value)

    return message


# ---- defaults


def test_the_default_experiment() -> None:
    experiment = resolve(None, {}).experiment
    assert (experiment.name, experiment.seed, experiment.data) == ("rope", 1337, "pydocs")
    assert experiment.encoding["name"] == "rope"
    assert experiment.positions["name"] == "sequential"
    assert experiment.model.model_dump() == {
        "d_model": 128,
        "n_heads": 4,
        "n_layers": 4,
        "dropout": 0.0,
        "qk_norm": False,
        "log_n": False,
    }
    training = experiment.training
    assert (training.length, training.batch_size, training.optimizer) == (128, 32, "muon")
    assert (training.learning_rate, training.muon_learning_rate, training.weight_decay) == (0.01, 0.02, 0.0)
    assert (training.warmup_steps, training.grad_clip, training.eval_every, training.save_every) == (
        20,
        1.0,
        250,
        250,
    )
    assert (training.precision, training.compile) == ("auto", "auto")
    evaluation = experiment.evaluation
    assert evaluation.lengths == (128, 256, 512, 1024, 2048, 4096)
    assert evaluation.strategies == ("none", "repeat_last", "interpolate")
    assert evaluation.protocols == ("same_targets",)
    assert (evaluation.stride, evaluation.windows, evaluation.scored, evaluation.batch_size) == (
        64,
        32,
        64,
        8,
    )


def test_an_empty_file_is_the_default_experiment_under_its_own_name(resolved: Resolver) -> None:
    for text in ("", "# nothing\n", "training:\nmodel:\nevaluation:\n"):
        found = resolved(text)
        assert found.experiment.name == "exp"
        assert found.experiment.model_copy(update={"name": "rope"}) == resolve(None, {}).experiment
        assert set(found.origins.values()) == {"default"}


def test_without_a_file_the_name_is_the_encodings(resolved: Resolver) -> None:
    assert resolve(None, {"encoding": "ALiBi"}).experiment.name == "alibi"


def test_evaluation_follows_the_training_length_unless_stated(resolved: Resolver) -> None:
    evaluation = resolved("training: {length: 32}").experiment.evaluation
    assert evaluation.lengths == (32, 64, 128, 256, 512, 1024, 2048, 4096)
    assert evaluation.scored == 32
    assert resolved("training: {length: 32}\nevaluation: {lengths: 50}").experiment.evaluation.lengths == (50,)
    assert doubled_lengths(5000) == (5000,)


# ---- case 7: misspelt and misplaced keys


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("training: {learning_rte: 0.1}", ["training.learning_rte", "'learning_rate'"]),
        ("encodng: rope", ["encodng", "'encoding'"]),
        ("n-heads: 4", ["n-heads", "'model.n_heads'", "under model:"]),
        ("model: {n-heads: 4}", ["model.n-heads", "'n_heads'"]),
        ("encoding_args: {thetta: 5}", ["encoding_args", "'encoding'"]),
        ("encoding: {name: rope, bse: 5}", ["encoding.bse", "'base'"]),
        ("encoding: {name: alibi, rope_base: 5}", ["encoding.rope_base", "alibi", "max_exponent"]),
        ("encoding: {name: alibi, base: 5}", ["encoding.base", "option of", "rope"]),
        ("encoding: {name: none, base: 5}", ["encoding.base", "none has no such option", "rope"]),
        ("steps: 5", ["steps", "'training.steps'", "under training:"]),
        ("learning_rte: 5", ["learning_rte", "'training.learning_rate'"]),
        ("batch_size: 5", ["'training.batch_size' or 'evaluation.batch_size'"]),
        ("training: {d_model: 8}", ["training.d_model", "'model.d_model'", "under model:"]),
        ("training: {seed: 8}", ["training.seed", "'seed'", "top level"]),
        ("training: {training: {steps: 8}}", ["training.training", "top level"]),
        ("base: 1000", ["base", "'encoding.base'", "under encoding:"]),
        ("training.steps: 5", ["training.steps", "`steps:` under `training:`"]),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest(refusal: Callable[..., str], text: str, words: list[str]) -> None:
    message = refusal(f"name: x\n{text}\n")
    assert message.startswith("exp.yaml:2: ")
    for word in words:
        assert word in message


def test_every_problem_is_named_with_its_line(refusal: Callable[..., str]) -> None:
    message = refusal("seed: -1\ntraining:\n  steps: many\n  length: 1\nevaluation:\n  windows: 0\n")
    assert message.splitlines() == [
        "exp.yaml:1: seed: must be greater than or equal to 0, not -1",
        "exp.yaml:4: training.length: must be greater than or equal to 2, not 1",
        "exp.yaml:3: training.steps: must be a whole number, not 'many'",
        "exp.yaml:6: evaluation.windows: must be greater than 0, not 0",
    ]


def test_many_problems_stay_a_short_message(refusal: Callable[..., str]) -> None:
    message = refusal("".join(f"key_{number}: 1\n" for number in range(50)))
    assert "and 44 more" in message


def test_a_huge_value_stays_a_short_message(refusal: Callable[..., str]) -> None:
    assert len(refusal(f"seed: {'9' * 100_000}")) < 500


# ---- case 29: YAML that turns names into other things


@pytest.mark.parametrize("name", ["2024-01-01", "1e3", "007", "no", "1:30", "0x10", "null", "[bold] red", "Ünï"])
def test_text_keys_take_the_text_as_written(resolved: Resolver, name: str) -> None:
    assert resolved(f"name: '{name}'").experiment.name == name
    if "[" not in name:
        assert resolved(f"name: {name}").experiment.name == name
    assert resolved("", {"name": name}).experiment.name == name


def test_a_leading_zero_is_decimal(resolved: Resolver) -> None:
    assert resolved("seed: 010").experiment.seed == 10


@pytest.mark.parametrize(
    "typed",
    ["none", "None", "NONE", "null", "no", "NO", "~", "'no'", "{name: none}", "{name: no}", "{name: ~}"],
)
def test_each_spelling_of_none_means_no_encoding(resolved: Resolver, typed: str) -> None:
    found = resolved(f"encoding: {typed}")
    assert found.experiment.encoding == {"name": "none"}
    assert found.origins["encoding.name"] == "file"
    assert "name: none  # file" in to_yaml(found)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("encoding:", "encoding"),
        ("encoding: {name: }", "encoding.name"),
        ("encoding: {name: rope, base: }", "encoding.base"),
        ("seed:", "seed"),
        ("name:", "name"),
        ("data:", "data"),
        ("data: ''", "data"),
        ("positions:", "positions"),
        ("training: {steps: }", "training.steps"),
        ("evaluation: {lengths: }", "evaluation.lengths"),
    ],
)
def test_an_empty_value_is_refused_by_key(refusal: Callable[..., str], text: str, key: str) -> None:
    message = refusal(text)
    assert message.startswith(f"exp.yaml:1: {key}: is empty")


@pytest.mark.parametrize("text", ["- rope\n", "rope\n", "42\n"])
def test_a_list_or_a_scalar_is_no_config(refusal: Callable[..., str], text: str) -> None:
    assert "exp.yaml: holds a" in refusal(text)


# ---- numbers, switches, lists: promises 3 and 6


@pytest.mark.parametrize("typed", ["1e-3", "1E-3", "0.001", ".001", "+1.0e-3", "0.00_1", "'1e-3'"])
def test_numbers_as_a_person_writes_them(resolved: Resolver, typed: str) -> None:
    assert resolved(f"training: {{learning_rate: {typed}}}").experiment.training.learning_rate == 0.001


@pytest.mark.parametrize(("typed", "number"), [("1_000", 1000), ("1e3", 1000), ("1.5e2", 150), ("010", 10), ("0", 0)])
def test_whole_numbers_as_a_person_writes_them(resolved: Resolver, typed: str, number: int) -> None:
    assert resolved(f"training: {{steps: {typed}}}").experiment.training.steps == number
    assert resolved("", {"training.steps": typed}).experiment.training.steps == number


@pytest.mark.parametrize(
    "setting",
    [
        *[
            "training.steps=" + typed
            for typed in ("3.5", "4096x", "nan", "inf", "-5", "true", "1e99", "1__0", "1,0", "")
        ],
        *["training.learning_rate=" + typed for typed in ("0", "-1", "nan", ".inf", "-inf", "1e999", "fast", "1e-3x")],
        *["model.dropout=" + typed for typed in ("1", "-0.1", "1.5")],
        *["model.qk_norm=" + typed for typed in ("1", "0", "maybe")],
        *["evaluation.lengths=" + typed for typed in ("64,,128", "64,", ",", "", "1", "64,x", "64 128", "0")],
        *["training.length=" + typed for typed in ("1", "0", "1e10")],
        *[f"training.{key}=0" for key in ("batch_size", "eval_every", "save_every", "grad_clip")],
        *[f"evaluation.{key}=0" for key in ("stride", "windows", "scored", "batch_size")],
        "training.warmup_steps=-1",
        "training.weight_decay=-1",
        "training.optimizer=sgd",
        "training.precision=float16",
        "training.compile=2",
        "evaluation.strategies=yarnish",
        "evaluation.protocols=sliding_doors",
        "evaluation.scored=129",
        "model.n_layers=0",
        "model.d_model=0",
        "seed=-1",
        "seed=1.5",
    ],
)
def test_wrong_values_are_refused_by_key_in_the_file_and_on_the_command_line(
    refusal: Callable[..., str], setting: str
) -> None:
    key, _, typed = setting.partition("=")
    nested = f"'{typed}'"
    for part in reversed(key.split(".")):
        nested = f"{{{part}: {nested}}}"
    label = f"--seed {typed}" if key == "seed" else f"--set {setting}"
    assert refusal("", {key: typed}).startswith(f"{label}: {key}: ")
    assert refusal(nested).startswith(f"exp.yaml:1: {key}: ")


def test_a_list_may_be_text_with_commas_and_is_put_in_order(resolved: Resolver) -> None:
    for typed in ("[128, 64, 64]", "128,64,64", "'64, 128'", "[64, '128']", "[1.28e2, 6_4]"):
        assert resolved(f"evaluation:\n  lengths: {typed}").experiment.evaluation.lengths == (64, 128)
    assert resolved("", {"evaluation.lengths": "[128, 64]"}).experiment.evaluation.lengths == (64, 128)


def test_an_empty_list_is_refused(refusal: Callable[..., str]) -> None:
    assert "evaluation.lengths" in refusal("evaluation: {lengths: []}")
    assert "evaluation.strategies" in refusal("evaluation: {strategies: []}")


def test_names_take_dashes_and_any_case(resolved: Resolver) -> None:
    experiment = resolved(
        "encoding: ROPE\ndata: PyDocs\npositions: Sequential\n"
        "training: {optimizer: AdamW, precision: Float32, compile: True}\n"
        "evaluation: {strategies: [Repeat-Last, NONE, repeat_last], protocols: 'Non-Overlapping'}\n"
    ).experiment
    assert (experiment.encoding["name"], experiment.data, experiment.positions["name"]) == (
        "rope",
        "pydocs",
        "sequential",
    )
    assert (experiment.training.optimizer, experiment.training.precision) == ("adamw", "float32")
    assert experiment.training.compile == "true"
    assert experiment.evaluation.strategies == ("repeat_last", "none")
    assert experiment.evaluation.protocols == ("non_overlapping",)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("encoding: rop", "'rope'"),
        ("evaluation: {strategies: [interpolat]}", "'interpolate'"),
        ("evaluation: {protocols: same_target}", "'same_targets'"),
        ("training: {optimizer: adam}", "'adamw'"),
        ("data: pydoc", "'pydocs'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(refusal: Callable[..., str], text: str, near: str) -> None:
    assert near in refusal(text)


def test_steps_may_be_zero(resolved: Resolver) -> None:
    assert resolved("training: {steps: 0}").experiment.training.steps == 0


# ---- encodings made of encodings


def test_nested_encodings_are_resolved(resolved: Resolver) -> None:
    encoding = resolved("encoding: {name: mix, parts: [{name: alibi, max_exponent: 4}, none]}").experiment.encoding
    assert encoding["parts"] == [{"name": "alibi", "max_exponent": 4.0, "slopes": "fixed"}, {"name": "none"}]


def test_a_bad_option_of_a_part_is_refused_with_its_name(refusal: Callable[..., str]) -> None:
    message = refusal("encoding: {name: mix, parts: [{name: alibi, max_exponnt: 4}]}")
    assert message.startswith("exp.yaml:1: encoding")
    assert "max_exponnt" in message
    assert "'max_exponent'" in message


def test_a_bad_value_of_an_option_names_key_and_value(refusal: Callable[..., str]) -> None:
    assert refusal("seed: 1\nencoding:\n  name: rope\n  base: -3\n").startswith(
        "exp.yaml:4: encoding.base: must be greater"
    )
    assert "-3.0" in refusal("encoding: {name: rope, base: -3}")


@pytest.mark.parametrize("typed", ["[rope]", "{base: 3}", "{name: [rope]}"])
def test_a_block_without_a_name_is_refused(refusal: Callable[..., str], typed: str) -> None:
    assert refusal(f"encoding: {typed}").startswith("exp.yaml:1: encoding")


# ---- sizes: case 42


@pytest.mark.parametrize("typed", ["{d_model: 30, n_heads: 2}", "{d_model: 3, n_heads: 1}"])
def test_an_odd_head_size_is_refused_for_rope_before_any_data_is_read(refusal: Callable[..., str], typed: str) -> None:
    assert refusal(f"encoding: rope\nmodel: {typed}").startswith("exp.yaml:1: ")
    assert refusal("", {"encoding": "{name: mix, parts: [rope]}", "model.d_model": "30", "model.n_heads": "2"})


def test_heads_that_do_not_divide_are_refused_with_what_would_work(refusal: Callable[..., str]) -> None:
    message = refusal("model: {d_model: 32, n_heads: 5}")
    for words in ("exp.yaml:1: model", "d_model 32", "n_heads 5", "2, 4, 8", "30 or 35"):
        assert words in message


@pytest.mark.parametrize(
    "text", ["encoding: sinusoidal\nmodel: {d_model: 33, n_heads: 3}", "model: {d_model: 8, n_heads: 4}"]
)
def test_odd_widths_and_small_heads_that_fit_are_accepted(resolved: Resolver, text: str) -> None:
    assert resolved(text).experiment.model.d_model in (33, 8)


def test_a_combination_that_does_not_fit_names_file_and_option(refusal: Callable[..., str]) -> None:
    message = refusal("encoding: rope\nmodel: {d_model: 32}", {"model.n_heads": "32"})
    assert message.startswith("exp.yaml: --set model.n_heads=32: ")


NESTED = {
    "{name: mix, parts: [learned, {name: t5, buckets: x}]}": "encoding.parts.1.buckets: must be a whole number, not ",
    "{name: mix, parts: [learned, t55]}": "encoding.parts.1: 't55' is not known; did you mean 't5'?",
    "{name: mix, parts: [learned, {bucket: 3}]}": "encoding.parts.1: the block of bucket has no name",
    "{name: sinks, encoding: {name: strided, encoding: {name: rope, base: 0}}}": "encoding.encoding.encoding.base: ",
    "{name: sinks, encoding: {name: rope, bass: 3}}": "encoding.encoding.bass: rope has no such option; did you mean",
    "{name: bipe, absolute: {name: sinusoidal, base: 0}}": "encoding.absolute.base: must be greater",
    "{name: bipe, absolute: [a]}": "encoding.absolute: ['a'] is neither a name nor a block",
    "{name: mix, parts: [learned, {name: bipe, absolute: abacus}]}": "encoding.parts.1.absolute: abacus reads its",
    "{name: sinks, encoding: {name: dape, encoding: rope}}": "encoding.encoding.encoding: rope adds no bias",
    "{name: sinks, encoding: {name: mix, parts: [rope, path]}}": "encoding.encoding.parts: rope and path both change",
    "{name: layered, pattern: [rope, {name: sinks, encoding: sinusoidal}]}": "encoding.pattern: sinks acts before",
    "{name: layered, pattern: [rope, {name: fope, base: 0}]}": "encoding.pattern.1.base: must be greater",
}


@pytest.mark.parametrize("block", NESTED)
def test_what_is_wrong_inside_an_inner_encoding_is_named_by_its_whole_key(
    block: str, refusal: Callable[..., str]
) -> None:
    assert refusal(f"seed: 1\nencoding: {block}").startswith(f"exp.yaml:2: {NESTED[block]}")


def test_the_option_that_says_it_is_named(refusal: Callable[..., str]) -> None:
    message = refusal("encoding: {name: sinks, encoding: {name: t5}}", {"encoding.encoding.buckets": "x"})
    assert message.startswith("--set encoding.encoding.buckets=x: encoding.encoding.buckets: must be a whole number")


# ---- case 31: precedence, origins, overrides


def test_command_line_over_file_over_default_with_origins(resolved: Resolver) -> None:
    found = resolved("training: {learning_rate: 0.1, steps: 5}", {"training.learning_rate": "1", "seed": 3})
    assert found.experiment.training.learning_rate == 1.0
    assert {key: origin for key, origin in found.origins.items() if origin != "default"} == {
        "seed": "command line",
        "training.learning_rate": "command line",
        "training.steps": "file",
    }
    assert found.origins["training.length"] == "default"
    lines = to_yaml(found).splitlines()
    assert "  learning_rate: 1.0  # command line" in lines
    assert "  steps: 5  # file" in lines
    assert "  length: 128  # default" in lines


def test_an_option_that_was_not_given_changes_nothing(resolved: Resolver) -> None:
    assert resolved("seed: 4", {"seed": None, "encoding": None, "data": None}).experiment.seed == 4


def test_an_encoding_from_the_command_line_replaces_the_whole_block(resolved: Resolver) -> None:
    found = resolved("encoding: {name: rope, base: 500}", {"encoding": "alibi", "encoding.max_exponent": "4"})
    assert found.experiment.encoding == {"name": "alibi", "max_exponent": 4.0, "slopes": "fixed"}
    assert found.origins["encoding.name"] == found.origins["encoding.max_exponent"] == "command line"


@pytest.mark.parametrize("text", ["", "encoding: rope", "encoding: {name: rope}", "encoding: {name: rope, base: 3}"])
def test_an_option_of_the_encoding_is_set_in_the_block(resolved: Resolver, text: str) -> None:
    found = resolved(text, {"encoding.base": "1e3"})
    assert found.experiment.encoding["base"] == 1000.0
    assert found.origins["encoding.base"] == "command line"
    assert found.origins["encoding.name"] == ("file" if text else "default")


def test_an_encoding_block_from_the_command_line(resolved: Resolver, refusal: Callable[..., str]) -> None:
    found = resolved("", {"encoding": "{name: mix, parts: [alibi, none]}"})
    assert [part["name"] for part in found.experiment.encoding["parts"]] == ["alibi", "none"]
    assert refusal("", {"encoding": "{name: mix"}).startswith("--encoding {name: mix:1:")
    assert refusal("", {"encoding": " "}).startswith("--encoding")


@pytest.mark.parametrize(
    ("overrides", "start"),
    [
        ({"encoding": "rop"}, "--encoding rop: encoding: 'rop' is not known; did you mean 'rope'?"),
        ({"encoding.bse": "5"}, "--set encoding.bse=5: encoding.bse: "),
        ({"encoding": "alibi", "encoding.base": "5"}, "--set encoding.base=5: encoding.base: "),
        (
            {"training.stepz": "5"},
            "--set training.stepz=5: training.stepz: unknown key; did you mean 'steps'?",
        ),
        ({"steps": "5"}, "--set steps=5: steps: unknown key here; did you mean 'training.steps'?"),
        ({"training": "5"}, "--set training=5: training: must be a block of keys"),
        ({"training.steps.x": "5"}, "--set training.steps.x=5: training.steps: must be a whole number"),
        ({"": "5"}, "--set =5: "),
        ({"training..steps": "5"}, "--set training..steps=5: "),
        ({"x-a": "5"}, "--set x-a=5: x-a: unknown key"),
        ({"data": "nope.txt"}, "--data nope.txt: data: "),
    ],
)
def test_overrides_are_refused_under_their_own_name(
    refusal: Callable[..., str], overrides: dict[str, str], start: str
) -> None:
    assert refusal("name: x\n", overrides).startswith(start)


def test_a_problem_of_the_file_is_not_blamed_on_the_command_line(refusal: Callable[..., str]) -> None:
    assert refusal("encoding: {name: rope, bse: 3}", {"encoding.base": "5"}).startswith("exp.yaml:1: encoding.bse")
    assert refusal("encoding: rop", {"encoding.base": "5"}).startswith("exp.yaml:1: encoding.name: 'rop'")
    assert refusal("training: 5", {"training.steps": "5"}).startswith("exp.yaml:1: training: ")


def test_keys_for_anchors_are_ignored(resolved: Resolver) -> None:
    text = "x-base: &base {steps: 7, length: 32}\nx-empty:\ntraining:\n  <<: *base\n  length: 64\n"
    found = resolved(text)
    assert (found.experiment.training.steps, found.experiment.training.length) == (7, 64)
    assert found.origins["training.steps"] == "file"


def test_duplicates_are_refused_with_both_lines(refusal: Callable[..., str]) -> None:
    message = refusal("training:\n  steps: 1\n  length: 8\n  steps: 2\n")
    assert "training.steps" in message
    assert "line 2 and on line 4" in message


# ---- data and names: promise 15


def test_a_path_is_relative_to_the_file_or_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in "ab":
        (tmp_path / folder / "zen.txt").write_text("text")
    config = tmp_path / "a" / "c.yaml"
    config.write_text("data: zen.txt\n")
    found = set()
    for start, path in (
        (tmp_path, "a/c.yaml"),
        (tmp_path / "b", "../a/c.yaml"),
        (tmp_path / "a", str(config)),
    ):
        monkeypatch.chdir(start)
        found.add(resolve(Path(path), {}).experiment.data)
    assert found == {str(tmp_path / "a" / "zen.txt")}
    monkeypatch.chdir(tmp_path / "b")
    assert resolve(config, {"data": "zen.txt"}).experiment.data == str(tmp_path / "b" / "zen.txt")


def test_a_text_that_does_not_exist_is_refused_with_the_absolute_path(
    refusal: Callable[..., str], tmp_path: Path
) -> None:
    message = refusal("seed: 1\ndata: sub/zen.txt\n")
    assert message.startswith("exp.yaml:2: data: 'sub/zen.txt'")
    assert str(tmp_path / "sub" / "zen.txt") in message
    assert "pydocs" in message
    assert "directory" in refusal("data: .")


def test_a_file_named_like_a_corpus_is_reached_by_a_path(resolved: Resolver, tmp_path: Path) -> None:
    (tmp_path / "pydocs").write_text("text")
    assert resolved("data: pydocs").experiment.data == "pydocs"
    assert resolved("data: ./pydocs").experiment.data == str(tmp_path / "pydocs")


def test_a_task_is_checked_like_a_block(refusal: Callable[..., str]) -> None:
    assert "data.task: 'cpoy' is not known; did you mean 'copy'?" in refusal("data: {task: cpoy, max_length: 20}")
    assert "exp.yaml:1: data.max_length: must be a whole number, not 'many' (of copy)" in refusal(
        "data: {task: copy, max_length: many}"
    )
    assert "data.max: unknown key" in refusal("data: {task: copy, max: 20}")
    assert "the block names no task" in refusal("data: {max_length: 20}")
    message = refusal("data: task:copy\ntraining: {length: 39}")
    assert message.startswith("exp.yaml:2: training.length: must be 40, which the longest instance of copy")
    message = refusal("data: task:copy\ntraining: {length_range: [64, 512]}")
    assert message.startswith("exp.yaml:2: training.length_range: a task draws the length of every instance by itself")
    message = refusal("data: task:copy", {"evaluation.protocols": "same_targets"})
    assert "a task has the protocol instances, not same_targets" in message
    assert "min_length 9 is above max_length 3" in refusal("data: {task: copy, min_length: 9, max_length: 3}")
    assert "did you mean 'task:copy'?" in refusal("data: task_copy")
    assert "a text has same_targets, non_overlapping, sliding, not instances" in refusal(
        "evaluation: {protocols: instances}"
    )


@pytest.mark.parametrize("name", ["a/b", "", "  ", ".hidden", "..", "a\\nb", "a\\0b", "a\\eb", "é" * 51, "a\\u2028b"])
def test_names_that_cannot_name_a_directory_are_refused(refusal: Callable[..., str], name: str) -> None:
    message = refusal(f'name: "{name}"')
    assert message.startswith("exp.yaml:1: name: must be 1 to 100 bytes")
    assert message.isprintable()


def test_a_stem_that_cannot_name_a_directory_asks_for_a_name(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120 + ".yaml")
    path.write_text("seed: 1\n")
    with pytest.raises(ConfigError, match="state a `name:`"):
        resolve(path, {})
    path.write_text("name: short\n")
    assert resolve(path, {}).experiment.name == "short"


# ---- writing down, reading again, identity


def test_a_run_is_read_again_without_its_corpus(resolved: Resolver, tmp_path: Path) -> None:
    (tmp_path / "zen.txt").write_text("text")
    found = resolved("data: zen.txt\nencoding: {name: rope, base: 7}")
    (tmp_path / "zen.txt").unlink()
    assert load_experiment(to_yaml(found), "config.yaml") == found.experiment
    with pytest.raises(ConfigError, match=r"config\.yaml: name: is missing"):
        load_experiment("seed: 1\n", "config.yaml")


def test_evaluation_of_a_run_can_be_changed_and_nothing_else(resolved: Resolver) -> None:
    run = resolved("training: {length: 32}\nname: run").experiment
    changed = with_evaluation(run, {"evaluation.lengths": "64,32", "evaluation.windows": 4, "evaluation.stride": None})
    assert changed.evaluation.lengths == (32, 64)
    assert changed.evaluation.windows == 4
    assert changed.model_copy(update={"evaluation": run.evaluation}) == run
    with pytest.raises(ConfigError, match=r"evaluation\.KEY only"):
        with_evaluation(run, {"training.steps": "4"})
    with pytest.raises(ConfigError, match=r"--set evaluation.scored=64: evaluation.scored: must be at most"):
        with_evaluation(run, {"evaluation.scored": "64"})


def test_the_identity_is_of_what_decides_a_training(resolved: Resolver) -> None:
    base = training_identity(resolved("").experiment, "hash")
    assert len(base) == 10
    assert int(base, 16) >= 0
    same = "name: other\nseed: 9\ndata: text8\nencoding: {name: ROPE}\nevaluation: {windows: 3}"
    assert training_identity(resolved(same).experiment, "hash") == base
    assert training_identity(resolved("training: {steps: 4e2}").experiment, "hash") == base
    for text in (
        "training: {steps: 601}",
        "encoding: none",
        "encoding: {base: 9, name: rope}",
        "model: {log_n: on}",
    ):
        assert training_identity(resolved(text).experiment, "hash") != base
    assert training_identity(resolved("").experiment, "other") != base


encodings = st.one_of(
    st.sampled_from(["none", "rope", "alibi", "sinusoidal"]).map(lambda name: {"name": name}),
    st.floats(1, 1e9).map(lambda base: {"name": "rope", "base": base}),
    st.floats(1e-3, 1e3).map(
        lambda slope: {"name": "mix", "parts": ["rope", {"name": "alibi", "max_exponent": slope}]}
    ),
)
names = st.text(min_size=1, max_size=20).filter(
    lambda text: text.strip() and text.isprintable() and "/" not in text and not text.startswith(".")
)
experiments = st.fixed_dictionaries(
    {},
    optional={
        "name": names,
        "seed": st.integers(0, 2**63 - 1),
        "encoding": encodings,
        "model": st.fixed_dictionaries({}, optional={"dropout": st.floats(0, 0.99), "qk_norm": st.booleans()}),
        "training": st.fixed_dictionaries(
            {},
            optional={
                "length": st.integers(2, 5000),
                "learning_rate": st.floats(min_value=0, exclude_min=True, allow_infinity=False),
                "optimizer": st.sampled_from(["muon", "adamw"]),
                "compile": st.sampled_from(["auto", "true", "false"]),
            },
        ),
        "evaluation": st.fixed_dictionaries(
            {}, optional={"lengths": st.lists(st.integers(2, 10_000), min_size=1, max_size=5)}
        ),
    },
)


@settings(max_examples=60, deadline=None)
@given(experiments)
def test_a_resolved_experiment_written_down_resolves_to_itself(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    (folder / "first.yaml").write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    first = resolve(folder / "first.yaml", {})
    text = to_yaml(first)
    (folder / "second.yaml").write_text(text, encoding="utf-8")
    second = resolve(folder / "second.yaml", {})
    assert second.experiment == first.experiment
    assert set(second.origins.values()) == {"file"}
    assert to_yaml(first.experiment) == to_yaml(second.experiment)
    assert yaml.safe_load(text).keys() == Experiment.model_fields.keys()
    dumped = json.loads(json.dumps(first.experiment.model_dump(mode="json"), allow_nan=False))
    assert Experiment.model_validate(dumped) == first.experiment
    assert training_identity(second.experiment, "hash") == training_identity(first.experiment, "hash")
