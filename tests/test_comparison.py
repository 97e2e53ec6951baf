"""Which runs a comparison has, checked before any of them starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small_runs import config_file

from pe_cli import corpus as corpora
from pe_cli.comparison import AS_CONFIGURED, Plan, Variation, baseline_of, default_name, expand, plan
from pe_cli.errors import ConfigError
from pe_cli.options import lengths_up_to, seed_list


def planned(*configs: Path, seeds: str | None = None, max_len: int | None = None, **overrides: Any) -> Plan:
    changes: Mapping[str, Any] = {key.replace("__", "."): value for key, value in overrides.items()}
    return plan(
        configs, changes, lambda one: lengths_up_to(max_len, one.trained_length), lambda first: seed_list(seeds, first)
    )


def directories(found: Plan) -> list[str]:
    return [f"{run.name} {run.experiment.seed}" for run in found.runs]


# --- which configs ---


def test_patterns_are_expanded_sorted_and_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("c.yaml", "a.yaml", "b.yaml", "other.txt"):
        (tmp_path / name).touch()
    assert expand(["*.yaml"]) == [Path("a.yaml"), Path("b.yaml"), Path("c.yaml")]
    assert expand(["c.yaml", "*.yaml", "./c.yaml", str(tmp_path / "a.yaml")]) == [
        Path("c.yaml"),
        Path("a.yaml"),
        Path("b.yaml"),
    ]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a[1].yaml", "a1.yaml"):
        (tmp_path / name).touch()
    assert expand(["a[1].yaml"]) == [Path("a[1].yaml")]
    assert expand(["a[0-9].yaml"]) == [Path("a1.yaml")]


@pytest.mark.parametrize("pattern", ["*.yml", "a?.yaml", "missing.yaml"])
def test_no_match_names_the_pattern_and_the_directory(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").touch()
    with pytest.raises(ConfigError) as error:
        expand(["a.yaml", pattern])
    assert f"'{pattern}'" in str(error.value)
    assert str(tmp_path) in str(error.value)


# --- which runs ---


def test_every_config_at_every_seed(tmp_path: Path) -> None:
    rope = config_file(tmp_path / "rope.yaml", encoding="rope", seed=7)
    none = config_file(tmp_path / "none.yaml", encoding="none", seed=9)
    assert directories(planned(rope, none)) == ["rope 7", "none 9"]
    assert directories(planned(rope, none, seeds="3")) == [
        f"{name} {seed}" for name in ("rope", "none") for seed in (7, 8, 9)
    ]
    assert directories(planned(rope, none, seeds="2,1,2")) == [
        f"{name} {seed}" for name in ("rope", "none") for seed in (1, 2)
    ]
    assert directories(planned(rope, none, seeds="5,")) == ["rope 5", "none 5"]
    assert directories(planned(rope, none, seeds="2", seed=4)) == ["rope 4", "rope 5", "none 4", "none 5"]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", ",", "1,,2", "1,x"])
def test_seeds_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--seeds"):
        seed_list(text, 7)


def test_seeds_beyond_the_largest_are_refused() -> None:
    assert seed_list("2", 2**63 - 2) == [2**63 - 2, 2**63 - 1]
    with pytest.raises(ConfigError, match="--seeds 2: seed 9223372036854775807 and the next ones"):
        seed_list("2", 2**63 - 1)


def test_seeds_share_everything_but_the_end_of_the_directory(tmp_path: Path) -> None:
    runs = planned(config_file(tmp_path / "rope.yaml", encoding="rope"), seeds="1,2").runs
    assert [run.directory.rsplit("-s", 1)[1] for run in runs] == ["1", "2"]
    assert len({run.directory.rsplit("-s", 1)[0] for run in runs}) == 1


def test_each_config_doubles_from_its_own_training_length(tmp_path: Path) -> None:
    short = config_file(tmp_path / "short.yaml", training={"length": 8})
    long = config_file(tmp_path / "long.yaml", training={"length": 16})
    found = [run.experiment.evaluation.lengths for run in planned(short, long, max_len=50).runs]
    assert found == [(8, 16, 32, 50), (16, 32, 50)]
    [run] = planned(long, max_len=32, training__length="8").runs
    assert run.experiment.evaluation.lengths == (8, 16, 32)


def test_a_task_trained_at_one_character_doubles_from_two_on() -> None:
    assert lengths_up_to(5, 1) == {"evaluation.lengths": "2,4,5"}


def test_a_config_from_a_pipe_is_read_once(tmp_path: Path) -> None:
    stated = config_file(tmp_path / "alibi.yaml", encoding="alibi", name="x", data="pydocs")
    reader, writer = os.pipe()
    os.write(writer, stated.read_bytes())
    os.close(writer)
    recipes = [AS_CONFIGURED, Variation("steps=3", {"training.steps": "3"})]
    try:
        of_pipe, of_file = (
            plan([path], {}, lambda one: {}, lambda first: [1, 2], recipes).runs
            for path in (Path(f"/dev/fd/{reader}"), stated)
        )
    finally:
        os.close(reader)
    assert [run.directory for run in of_pipe] == [run.directory for run in of_file]
    assert len(of_pipe) == 4


def test_a_text_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = corpora.load

    def counted(data: str, alphabet: str | None = None) -> corpora.Corpus:
        read.append(data)
        return load(data, alphabet)

    monkeypatch.setattr(corpora, "load", counted)
    planned(*(config_file(tmp_path / f"{name}.yaml", encoding=name) for name in ("rope", "none", "t5")), seeds="4")
    assert read == [str(tmp_path / "text.txt")]


# --- which are refused ---


def test_every_bad_config_is_named_and_the_good_ones_stay(tmp_path: Path) -> None:
    (tmp_path / "tiny.txt").write_text("abcdefgh")
    (tmp_path / "short.txt").write_text("the cat sat on a mat " * 12)
    bad = {
        "unknown": config_file(tmp_path / "unknown.yaml", encoding="rop"),
        "absent": config_file(tmp_path / "absent.yaml", data="absent.txt"),
        "tiny": config_file(tmp_path / "tiny.yaml", data="tiny.txt"),
        "long": config_file(tmp_path / "long.yaml", training={"length": 5000}),
        "hopeless": config_file(tmp_path / "hopeless.yaml", data="short.txt", evaluation={"lengths": [400, 500]}),
    }
    good = config_file(tmp_path / "good.yaml", encoding="rope")
    found = planned(*bad.values(), good)
    assert directories(found) == ["good 1337"]
    assert [refused.config for refused in found.refused] == list(bad.values())
    for refused in found.refused:
        assert str(refused.config) in refused.reason
    reasons = dict(zip(bad, (refused.reason for refused in found.refused), strict=True))
    assert "did you mean 'rope'" in reasons["unknown"]
    assert str(tmp_path / "absent.txt") in reasons["absent"]
    assert "8 characters" in reasons["tiny"]
    assert "5001" in reasons["long"]
    assert "no length can be evaluated: a window of 400" in reasons["hopeless"]


def test_lengths_that_do_not_fit_are_said_once_for_all_configs(tmp_path: Path) -> None:
    configs = [config_file(tmp_path / f"{name}.yaml", encoding=name) for name in ("rope", "none")]
    [note] = planned(*configs, max_len=1024).notes
    assert note.startswith(f"{tmp_path / 'text.txt'}: same_targets: skipping 256, 512, 1024: a window of 256")
    assert planned(*configs).notes == []


def test_a_validation_loss_of_shorter_windows_is_said_once_for_all_configs(tmp_path: Path) -> None:
    lengths = {"lengths": [32], "scored": 8}
    configs = [
        config_file(tmp_path / f"{name}.yaml", encoding=name, training={"length": 251}, evaluation=lengths)
        for name in ("rope", "none")
    ]
    [note] = planned(*configs).notes
    assert note == (
        f"{tmp_path / 'text.txt'}: the validation loss is of one window of 250 characters: one of training.length 251 "
        "needs as many held-out characters; there are 250"
    )
    assert planned(*configs, training__length="250").notes == []


def test_the_same_training_under_the_same_name_is_refused(tmp_path: Path) -> None:
    one = config_file(tmp_path / "one" / "x.yaml", encoding="rope")
    two = config_file(tmp_path / "two" / "x.yaml", encoding="rope", evaluation={"windows": 3})
    with pytest.raises(ConfigError) as error:
        planned(one, two)
    assert [part for part in (str(one), str(two), "'x'") if part not in str(error.value)] == []
    named = config_file(tmp_path / "two" / "x.yaml", encoding="rope", name="y")
    assert directories(planned(one, named)) == ["x 1337", "y 1337"]


def test_different_trainings_under_the_same_name_are_told_apart(tmp_path: Path) -> None:
    one = config_file(tmp_path / "one" / "x.yaml", encoding="rope")
    two = config_file(tmp_path / "two" / "x.yaml", encoding={"name": "rope", "base": 100.0})
    found = planned(one, two, seeds="2")
    assert len({run.directory for run in found.runs}) == 4
    names = list(dict.fromkeys(run.name for run in found.runs))
    assert names == list(dict.fromkeys(run.directory.rsplit("-s", 1)[0] for run in found.runs))
    assert len(names) == 2
    assert baseline_of(found.runs, names[1]) == (names[1], "none")
    with pytest.raises(ConfigError, match="'x' is not in this comparison"):
        baseline_of(found.runs, "x")


def test_a_config_means_the_same_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config_file(tmp_path / "deep" / "rope.yaml", encoding="rope")
    found = []
    for folder in (tmp_path, tmp_path / "deep", Path("/")):
        monkeypatch.chdir(folder)
        relative = Path(*([".."] * len(folder.parts[1:]))) / path.relative_to("/")
        found += [run.directory for given in (path, relative) for run in planned(given).runs]
    assert len(set(found)) == 1


# --- names ---


def test_the_baseline_is_the_first_config_or_the_one_named(tmp_path: Path) -> None:
    runs = planned(*(config_file(tmp_path / f"{name}.yaml", encoding=name) for name in ("rope", "none"))).runs
    assert baseline_of(runs, None) == ("rope", "none")
    assert baseline_of(runs, "none") == ("none", "none")
    with pytest.raises(ConfigError, match="'nonne' is not in this comparison; did you mean 'none'"):
        baseline_of(runs, "nonne")


def test_the_baseline_may_be_a_run_with_a_strategy(tmp_path: Path) -> None:
    path = config_file(tmp_path / "learned.yaml", encoding="learned", evaluation={"strategies": ["none", "wrap"]})
    runs = planned(path).runs
    assert baseline_of(runs, "learned + wrap") == ("learned", "wrap")
    assert baseline_of(runs, "Learned+wrap") == ("learned", "wrap")
    with pytest.raises(ConfigError, match="learned is not evaluated with zero; name it in --strategy"):
        baseline_of(runs, "learned + zero")
    with pytest.raises(ConfigError, match=r"--baseline learned \+ wrapp: .*'wrapp' is not known; did you mean 'wrap'"):
        baseline_of(runs, "learned + wrapp")
    with pytest.raises(ConfigError, match=r"--baseline learned \+ : "):
        baseline_of(runs, "learned + ")


def test_without_a_run_alone_the_baseline_is_the_first_run_with_its_first_strategy(tmp_path: Path) -> None:
    blocks: list[object] = [{"name": "sinks", "sinks": 2}, "wrap"]
    path = config_file(tmp_path / "learned.yaml", encoding="learned", evaluation={"strategies": blocks})
    assert baseline_of(planned(path).runs, None) == ("learned", "sinks(sinks=2)")
    path = config_file(tmp_path / "rope.yaml", encoding="rope", evaluation={"strategies": ["window", "all"]})
    assert baseline_of(planned(path).runs, None) == ("rope", "none")


def test_a_comparison_is_called_after_its_configs_or_their_folder() -> None:
    assert default_name([Path("a/rope.yaml"), Path("b/t5.yaml")], quick=False) == "rope-t5"
    assert default_name([Path("a/rope.yaml")], quick=True) == "rope-quick"
    many = [Path(f"configs/{name}.yaml") for name in "abcd"]
    assert default_name(many, quick=False) == "configs"
    assert default_name([*many, Path("more/e.yaml")], quick=False) == "configs-more"
