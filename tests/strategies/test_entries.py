"""How strategies are written down and called."""

import pytest
from stand_in import SPEC, evaluation_of, model_of, noise, quietly

from pe_cli import strategies
from pe_cli.config import load_experiment, resolve, to_yaml
from pe_cli.encodings.registry import build
from pe_cli.errors import ConfigError, StrategyRefused
from pe_cli.experiment import EvaluationConfig, Experiment
from pe_cli.extrapolation import report
from pe_cli.options import evaluation_overrides, several


def read(stated: object) -> tuple[object, ...]:
    return EvaluationConfig.model_validate({"strategies": stated}).strategies


def test_a_block_has_every_option_and_a_name_stands_for_the_defaults() -> None:
    assert strategies.canonical_block("Dynamic-NTK") == {"name": "dynamic_ntk", "growth": 2.0}
    assert strategies.canonical_block({"name": "sinks", "window": "5"}) == {"name": "sinks", "sinks": 4, "window": 5}
    for strategy in strategies.catalogue():
        assert strategies.label(strategies.canonical_block(strategy.name)) == strategy.name


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "yarn", "beta_fast": 4},
        {"name": "YaRN", "beta_fast": "4.0", "beta_slow": 1},
        "{name: yarn, beta_fast: 4}",
        "yarn(beta_fast=4)",
        " yarn( beta_fast = 4.0 ) ",
    ],
)
def test_an_entry_may_be_a_block_or_what_tables_call_it(entry: object) -> None:
    assert strategies.label(entry) == "yarn(beta_fast=4)"
    assert strategies.canonical_block(entry) == strategies.canonical_block("yarn(beta_fast=4)")


@pytest.mark.parametrize(
    ("entry", "called"),
    [
        ("longrope(factors=[1, 2.5])", "longrope(factors=[1, 2.5])"),
        ("rerope(log_n=no, window=3)", "rerope(window=3, log_n=false)"),
        ("interpolate(places=Ratio)", "interpolate(places=ratio)"),
        ("ntk(factor=none)", "ntk"),
        ("yarn(ramp=turns)", "yarn"),
    ],
)
def test_labels_keep_rows_apart_and_can_be_typed(entry: str, called: str) -> None:
    assert strategies.label(entry) == called
    assert strategies.label(called) == called


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("yarn(beta_fats=4)", "beta_fats: unknown key; did you mean 'beta_fast'?"),
        ("wrap(beta=4)", "beta: unknown key"),
        ("yarn(beta_fast=-1)", "beta_fast: must be greater than 0, not -1.0 (of yarn)"),
        ("yarn(beta_fast=x)", "beta_fast: must be a finite number, not 'x'"),
        ("sinks(window=1e18)", "window: must be at most 16777216 in size"),
        ("yarn(4)", "'yarn(4)': write yarn(OPTION=VALUE, …)"),
        ("yarm", "'yarm' is not known; did you mean 'yarn'?"),
        ({"beta_fast": 4}, "has no name; write 'name: none' in it"),
    ],
)
def test_refused_with_what_would_be_right(entry: object, why: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        strategies.canonical_block(entry)
    assert why in str(refusal.value)
    with pytest.raises(ConfigError) as refusal:
        strategies.build(entry)
    assert str(refusal.value).startswith("strategy")
    with pytest.raises(ConfigError) as refusal:
        resolve(None, {"evaluation.strategies": str(entry).replace("'", "")})
    assert "evaluation.strategies" in str(refusal.value)
    assert why in str(refusal.value)


def test_a_config_has_names_and_blocks() -> None:
    stated = "none, {name: yarn, beta_fast: 4}, yarn(beta_fast=4), Repeat-Last, {name: wrap}, rerope(window=3)"
    yarn, rerope = strategies.canonical_block("yarn(beta_fast=4)"), strategies.canonical_block("rerope(window=3)")
    expected = ("none", yarn, "repeat_last", "wrap", rerope)
    assert read(stated) == expected
    assert read(f"[{stated}]") == expected
    assert read(list(expected)) == expected
    assert read({"name": "wrap"}) == ("wrap",)


def test_the_command_line_keeps_brackets_together() -> None:
    typed = several(["none,yarn(beta_fast=4, ramp=pairs)", "{name: rerope, window: 3},wrap"])
    assert typed == ["none", "yarn(beta_fast=4, ramp=pairs)", "{name: rerope, window: 3}", "wrap"]
    experiment = resolve(None, evaluation_overrides(None, typed, None)).experiment
    assert [strategies.label(entry) for entry in experiment.evaluation.strategies] == [
        "none",
        "yarn(beta_fast=4, ramp=pairs)",
        "rerope(window=3)",
        "wrap",
    ]


def test_a_config_is_written_as_it_is_read() -> None:
    experiment = Experiment.model_validate(
        {"name": "run", "evaluation": {"strategies": ["all", "longrope(factors=[1, 2])", "yarn(beta_fast=4)"]}}
    )
    assert load_experiment(to_yaml(experiment), "run") == experiment


def test_all_runs_what_has_a_meaning_and_one_note_names_the_others() -> None:
    evaluation = evaluation_of(
        model_of("rope"), noise(2000), "rope", lengths=[16, 32], strategies=["all", "yarn", "ntk(factor=4)"]
    )
    tables = evaluation.run(quietly)
    found = list(dict.fromkeys(row["strategy"] for row in tables.extrapolation))
    assert {row["status"] for row in tables.extrapolation} == {"ok"}
    assert {"none", "yarn", "rerope", "truncate", "window", "interpolate", "ntk(factor=4)"} <= set(found)
    assert found.count("yarn") == 1
    [note] = [note for note in report(evaluation, tables).notes if "left out" in note]
    missing = [name for name in strategies.names() if name not in found]
    assert note == f"strategies without meaning for rope are left out: {', '.join(missing)}"
    assert {"cubic", "wrap", "longrope", "fourier"} <= set(missing)


def test_options_of_a_strategy_make_rows_of_their_own() -> None:
    names = ["rerope", "rerope(window=3)", {"name": "rerope", "window": 12}]
    evaluation = evaluation_of(model_of("rope"), noise(2000), "rope", lengths=[32], strategies=names)
    rows = {row["strategy"]: row["loss"] for row in evaluation.run(quietly).extrapolation}
    assert list(rows) == ["rerope", "rerope(window=3)", "rerope(window=12)"]
    assert len(set(rows.values())) == 3


@pytest.mark.parametrize("name", ["rerope", "leaky_rerope", "self_extend"])
def test_a_window_of_untrained_distances_is_refused(name: str) -> None:
    rope = build("rope", SPEC)
    at_most = f"{name}(window={SPEC.train_length - 1})"
    assert strategies.apply(at_most, rope, SPEC.train_length, 40) is not rope
    with pytest.raises(StrategyRefused, match=rf"window {SPEC.train_length}: .* those below {SPEC.train_length}"):
        strategies.apply(f"{name}(window={SPEC.train_length})", rope, SPEC.train_length, 40)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("all(x=1)", r"'all\(x=1\)': all takes no options"),
        ("interpolate(places=ends", r"write interpolate\(OPTION=VALUE, …\)"),
        ("interpolate(places=ends))", r"write interpolate\(OPTION=VALUE, …\)"),
    ],
)
def test_brackets_that_do_not_close_or_have_no_meaning_are_refused(entry: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        strategies.label(entry)


def test_a_temperature_without_a_factor_is_refused() -> None:
    rope = build("rope", SPEC)
    assert strategies.apply("yarn(factor=1)", rope, SPEC.train_length, 40) is rope
    with pytest.raises(StrategyRefused, match="attention_factor would have no effect"):
        strategies.apply("yarn(factor=1, attention_factor=5)", rope, SPEC.train_length, 40)
