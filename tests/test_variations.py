"""Comparisons under several recipes: what is planned, what is compared with what, and which orderings survive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import pe
from small_runs import config_file
from summaries import frames, row

from pe_cli import reports, variations
from pe_cli.comparison import AS_CONFIGURED, Plan, Variation, plan
from pe_cli.errors import ConfigError
from pe_cli.options import variation
from pe_cli.options import variations as variations_of
from pe_cli.summary import ORDERING_COLUMNS, Varied, orderings, summarise

HALF, ADAMW = "learning_rate=0.005", "optimizer=adamw"


def planned(folder: Path, *texts: str) -> Plan:
    configs = [config_file(folder / f"{name}.yaml", encoding=name) for name in ("rope", "alibi")]
    recipes = [AS_CONFIGURED, *(Variation(*variation(text)) for text in texts)]
    return plan(configs, {}, lambda length: {}, lambda first: [first], recipes)


def test_every_config_is_planned_under_every_recipe(tmp_path: Path) -> None:
    both = "training.learning_rate=0.005,training.muon_learning_rate=0.01"
    found = planned(tmp_path, both, "training.optimizer=adamw").runs
    assert [(run.name, run.base, run.variation) for run in found] == [
        ("rope", "rope", ""),
        ("alibi", "alibi", ""),
        ("rope, learning_rate=0.005, muon_learning_rate=0.01", "rope", "learning_rate=0.005, muon_learning_rate=0.01"),
        (
            "alibi, learning_rate=0.005, muon_learning_rate=0.01",
            "alibi",
            "learning_rate=0.005, muon_learning_rate=0.01",
        ),
        ("rope, optimizer=adamw", "rope", "optimizer=adamw"),
        ("alibi, optimizer=adamw", "alibi", "optimizer=adamw"),
    ]
    assert [run.experiment.training.learning_rate for run in found] == [0.01, 0.01, 0.005, 0.005, 0.01, 0.01]
    assert [run.experiment.training.optimizer for run in found][3:] == ["muon", "adamw", "adamw"]
    assert {run.experiment.name for run in found} == {"rope", "alibi"}, "the directory is that of the same training"
    assert len({run.directory for run in found}) == 6


def test_a_recipe_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--vary learning_rate=0.01: .*rope.yaml is trained as it is configured"):
        planned(tmp_path, "training.learning_rate=0.01")


@pytest.mark.parametrize("text", ["evaluation.windows=3", "seed=4", "name=x", "training.steps"])
def test_what_is_no_recipe_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--vary"):
        variation(text)


def test_a_value_may_have_commas() -> None:
    assert variation("encoding={name: rope, base: 1000},training.steps=5") == (
        "encoding={name: rope, base: 1000}, steps=5",
        {"encoding": "{name: rope, base: 1000}", "training.steps": "5"},
    )


LOSSES: dict[str, dict[str, list[float]]] = {
    "": {"a": [2.0, 2.1, 2.2], "b": [2.5, 2.61, 2.7], "c": [3.0, 3.1, 3.21]},
    HALF: {"a": [2.2, 2.3, 2.4], "b": [2.1, 2.21, 2.3], "c": [3.0, 3.1, 3.21]},
    ADAMW: {"a": [2.6, 2.7, 2.8], "b": [2.7, 2.6, 2.8], "c": [2.9, 3.0, 3.11]},
}
"""As configured a < b < c. Half: b < a < c. AdamW: a and b cannot be told apart."""


def varied(*diverged: str, missing: str | None = None) -> tuple[Any, Any, dict[str, Varied]]:
    """Rows are missing of a recipe whose runs all diverged at every seed."""
    names = {
        (base, recipe): f"{base}, {recipe}" if recipe else base
        for recipe, of_each in LOSSES.items()
        for base in of_each
    }
    rows = [
        row(names[base, recipe], loss, seed)
        for recipe, of_each in LOSSES.items()
        if recipe != missing
        for base, losses in of_each.items()
        for seed, loss in enumerate(losses)
    ]
    variants = {name: Varied(base, recipe, names["a", recipe]) for (base, recipe), name in names.items()}
    all_rows, windows = frames(rows)
    return summarise(all_rows, windows, "a", diverged, variants), windows, variants


def test_ranks_and_differences_are_within_a_recipe() -> None:
    summary, _, _ = varied()
    by = {entry["name"]: entry for entry in reports.records(summary)}
    assert by[f"b, {HALF}"]["baseline"] == f"a, {HALF}"
    assert by[f"b, {HALF}"]["difference"] == pytest.approx((2.1 + 2.21 + 2.3) / 3 - 2.3)
    ranks = {recipe: [by[f"{n}, {recipe}" if recipe else n]["rank"] for n in "abc"] for recipe in LOSSES}
    assert ranks == {"": [1, 2, 3], HALF: [2, 1, 3], ADAMW: [1, 1, 3]}


def test_orderings_that_are_clear_as_configured_are_followed_through_the_recipes() -> None:
    found = orderings(*varied())
    assert tuple(found.columns) == ORDERING_COLUMNS
    verdicts = {(e["better"], e["worse"], e["variation"]): e["verdict"] for e in reports.records(found)}
    assert verdicts == {
        ("a", "b", HALF): "reversed",
        ("a", "c", HALF): "same",
        ("b", "c", HALF): "same",
        ("a", "b", ADAMW): "unclear",
        ("a", "c", ADAMW): "same",
        ("b", "c", ADAMW): "same",
    }


def test_strategies_count_once_up_to_the_training_length_where_they_change_nothing() -> None:
    """Else a run with many strategies would be many runs that beat the others; a sampler moves that length on."""
    rows = [
        row(f"{base}, {HALF}" if recipe else base, loss + by * (length > 32), length=length, strategy=strategy)
        for base, loss in (("a", 2.0), ("b", 2.5), ("c", 3.0))
        for recipe in ("", HALF)
        for length in (16, 32, 64)
        for strategy, by in (("none", 0.0), ("wrap", 1e-7), ("mirror", 2e-7))
    ]
    variants = {entry["name"]: Varied(entry["name"][0], entry["name"][3:], "a") for entry in rows}
    all_rows, windows = frames(rows)
    summary = summarise(all_rows, windows, "a", (), variants)
    ranks = {(e["name"], e["length"], e["strategy"]): e["rank"] for e in reports.records(summary)}
    strategies = ("none", "wrap", "mirror")
    for length in (16, 32):
        found_there = [[ranks[name, length, strategy] for strategy in strategies] for name in "abc"]
        assert found_there == [[1] * 3, [2] * 3, [3] * 3]
    assert [ranks[name, 64, "wrap"] for name in "abc"] == [1, 4, 7]
    found = orderings(summary, windows, variants)
    assert [len(found[found["length"] == length]) for length in (16, 32, 64)] == [3, 3, 27]
    at_16, at_64 = variations.sensitivity("same_targets", summary, found)
    assert [entry["run"] for entry in at_16.rows] == ["a", "b", "c"]
    assert len(at_64.rows) == 9


def test_one_table_has_every_recipe_and_says_what_survives() -> None:
    """Kendall's tau: of three pairs of mean losses one is turned by half the rate, and none by AdamW but for a tie."""
    summary, windows, variants = varied()
    [table] = variations.sensitivity("same_targets", summary, orderings(summary, windows, variants))
    assert table.title == "Under other recipes at 64 characters (same_targets)"
    assert [column.heading for column in table.columns] == [
        "run", "as configured", "rank", HALF, "rank", ADAMW, "rank",
    ]  # fmt: skip
    assert [entry["run"] for entry in table.rows] == ["a", "b", "c"]
    assert [entry[f"value {HALF}"] for entry in table.rows] == pytest.approx([2.3, 2.2033333, 3.1033333])
    assert table.notes[0] == (f"{HALF}: of 3 clear orderings 2 same, 1 reversed; reversed: a < b; Kendall's tau 0.33")
    assert table.notes[1].startswith(f"{ADAMW}: of 3 clear orderings 2 same, 1 unclear")


@pytest.mark.parametrize(
    "found",
    [varied(*(f"{base}, {HALF}" for base in "abc")), varied(missing=HALF)],
    ids=["a seed of each", "every seed"],
)
def test_a_recipe_under_which_all_runs_diverge_keeps_no_ordering(found: tuple[Any, Any, dict[str, Varied]]) -> None:
    summary, windows, variants = found
    kept = orderings(summary, windows, variants)
    verdicts = {(e["better"], e["worse"], e["variation"]): e["verdict"] for e in reports.records(kept)}
    assert [verdicts["a", "b", HALF], verdicts["a", "c", HALF], verdicts["b", "c", HALF]] == ["unknown"] * 3
    assert verdicts["a", "c", ADAMW] == "same"
    [table] = variations.sensitivity("same_targets", summary, kept)
    [note] = [note for note in table.notes if note.startswith(f"{HALF}: ")]
    assert note.startswith(f"{HALF}: of 3 clear orderings 3 unknown")
    assert table.markdown().count(HALF) == 2, "a column and a note"


def test_a_recipe_that_gives_a_key_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="gives a key twice; each further recipe is a --vary of its own"):
        variation("training.steps=4,training.steps=5")


@pytest.mark.parametrize("order", [("s", "t"), ("t", "s")])
def test_a_config_called_as_another_is_under_a_recipe_is_refused(tmp_path: Path, order: tuple[str, str]) -> None:
    """Their runs would be taken for seeds of one."""
    names = {"s": "s", "t": "s, steps=0"}
    paths = {file: config_file(tmp_path / f"{file}.yaml", name=name) for file, name in names.items()}
    recipes = [AS_CONFIGURED, Variation(*variation("training.steps=0"))]
    with pytest.raises(ConfigError) as error:
        plan([paths[file] for file in order], {}, lambda one: {}, lambda first: None, recipes)
    said = [f"{paths['s']} with --vary steps=0", str(paths["t"]), "would both be called 's, steps=0'", "another name"]
    assert [part for part in said if part not in str(error.value)] == []


def test_a_config_called_as_one_of_two_with_the_same_name_is_told_apart_is_refused(tmp_path: Path) -> None:
    one = config_file(tmp_path / "one.yaml", name="x", encoding="rope")
    two = config_file(tmp_path / "two.yaml", name="x", encoding="alibi")
    composed = plan([one, two], {}, lambda one: {}, lambda first: None).runs[1].name
    third = config_file(tmp_path / "three.yaml", name=composed, encoding="t5")
    with pytest.raises(ConfigError, match=f"three.yaml and .*two.yaml would both be called '{composed}'"):
        plan([one, two, third], {}, lambda one: {}, lambda first: None)


def test_configs_of_one_name_are_known_again_under_every_recipe(tmp_path: Path) -> None:
    """Differences and orderings go by the name as configured; the digits of a varied training are others."""
    configs = [config_file(tmp_path / f"{one}.yaml", name="x", encoding=one) for one in ("rope", "alibi")]
    recipes = [AS_CONFIGURED, Variation(*variation("training.steps=0"))]
    found = plan(configs, {}, lambda one: {}, lambda first: None, recipes).runs
    assert [run.base for run in found] == [found[0].base, found[1].base] * 2
    assert found[2].name == f"{found[0].name}, steps=0"
    assert found[0].base != found[1].base


def test_seeds_of_one_training_in_several_configs_share_a_name(tmp_path: Path) -> None:
    configs = [config_file(tmp_path / f"{seed}.yaml", name="x", seed=seed) for seed in (1, 2)]
    assert [run.name for run in plan(configs, {}, lambda one: {}, lambda first: None).runs] == ["x", "x"]


def test_recipes_that_would_be_called_alike_are_called_by_their_whole_keys() -> None:
    texts = ["encoding.depth=2", "training.steps=5", "data.depth=2", "encoding.depth=3", "training.steps=5"]
    assert [name for name, _ in variations_of(texts)] == [
        "encoding.depth=2", "steps=5", "data.depth=2", "depth=3",
    ]  # fmt: skip
    [(name, changes)] = variations_of(["encoding.depth=2"])
    assert (name, changes) == ("depth=2", {"encoding.depth": "2"})


def test_recipes_with_equal_last_keys_are_two_for_the_command(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps({"data": {"task": "dyck", "max_length": 8}, "encoding": "tree"}), encoding="utf-8")
    recipes = [part for key in ("encoding", "data") for part in ("--vary", f"{key}.depth=2")]
    done = pe("compare", path, *recipes, "--out", tmp_path, "--dry-run", "--json")
    assert [run["name"] for run in done.json["runs"]] == ["s", "s, encoding.depth=2", "s, data.depth=2"]


def test_the_table_of_a_task_says_what_it_measures_and_not_in_characters() -> None:
    shares = {"": (0.9, 0.5), HALF: (0.4, 0.8)}
    rows = [
        row(f"{base}, {recipe}" if recipe else base, 1.0, protocol="instances", length=6, exact_match=share)
        for recipe, pair in shares.items()
        for base, share in zip("ab", pair, strict=True)
    ]
    variants = {entry["name"]: Varied(entry["name"][0], entry["name"][3:], "a") for entry in rows}
    all_rows, windows = frames(rows)
    windows = windows.assign(right_chars=8, scored_chars=8)
    summary = summarise(all_rows, windows, "a", (), variants)
    [table] = variations.sensitivity("instances", summary, orderings(summary, windows, variants))
    assert table.title == "Exact match under other recipes at length 6"
    assert [entry["value "] for entry in table.rows] == [0.9, 0.5]
