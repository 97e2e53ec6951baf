"""Whatever a config says: a short error that names the place, or an experiment that survives being written down."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import mutants
import pytest
import yaml
from by_example import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from watched import limited, peak_mib

from pe_cli import options, samplers, tasks
from pe_cli.config import Experiment, load_experiment, resolve, to_yaml
from pe_cli.encodings import registry
from pe_cli.errors import ConfigError, short
from pe_cli.samplers.registry import catalogue
from pe_cli.tasks.registry import task_class

SECONDS = 20
MOST_MIB = 300
LONGEST = 2**14
"""Bytes of a mutant: hundreds of thousands take seconds to read."""
GOOD = [path.read_bytes() for path in sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configs")


def tried(text: bytes, folder: Path, said: Mapping[str, str | int | None] | None = None) -> Experiment | str:
    """The experiment of a file, or the message that refuses it. What holds for both is checked."""
    path = folder / "exp.yaml"
    path.write_bytes(text)
    before = peak_mib()
    with limited(SECONDS):
        try:
            found = resolve(path, said or {})
        except ConfigError as error:
            message = str(error)
            assert message.strip()
            assert len(short(message).split("\n")) <= 15
            return message
        finally:
            assert peak_mib() - before < MOST_MIB
        path.write_text(to_yaml(found), encoding="utf-8")
        assert resolve(path, {}).experiment == found.experiment
        assert load_experiment(to_yaml(found.experiment), "config.yaml") == found.experiment
        return found.experiment


def nested(key: str, value: Any) -> dict[str, Any]:
    """{"a": {"b": value}} of `a.b`."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return dict(value)


# ---- keys and values

OF_ENCODINGS = {name: list(registry.encoding_class(name).Options.model_fields) for name in registry.names()}
OF_SAMPLERS = {cls.name: list(cls.Options.model_fields) for cls in catalogue()}
OF_TASKS = {name: list(task_class(name).Options.model_fields) for name in tasks.names()}
SECTIONS = [
    key for key in mutants.KEYS if key.startswith(("model.", "training.", "evaluation.")) and key.count(".") == 1
]

scalars = st.one_of(
    st.sampled_from(mutants.NUMBERS + mutants.TEXTS + mutants.NAMES),
    st.text(max_size=30),
    st.integers(),
    st.integers(-3, 200),
    st.floats(),
    st.booleans(),
    st.none(),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


def stated_in(block: str, own: Mapping[str, list[str]], name_key: str = "name") -> st.SearchStrategy[dict[str, Any]]:
    """A block with a name and any values of its options, or of options that it does not have."""
    return st.sampled_from(sorted(own)).flatmap(
        lambda name: st.dictionaries(st.sampled_from([*own[name], "x"]), values, max_size=2).map(
            lambda stated: {block: {name_key: name, **stated}}
        )
    )


def blocks_in_blocks(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda one: {"name": "sinks", "encoding": one}),
        inner.map(lambda one: {"name": "dape", "encoding": one}),
        st.lists(inner, max_size=3).map(lambda parts: {"name": "mix", "parts": parts}),
        st.lists(inner, max_size=4).map(lambda parts: {"name": "layered", "pattern": parts}),
    )


encodings = st.recursive(st.sampled_from(registry.names()) | scalars, blocks_in_blocks, max_leaves=6)
documents = st.one_of(
    st.builds(nested, st.sampled_from([key for key in mutants.KEYS if key]), values),
    st.builds(nested, st.sampled_from(SECTIONS), scalars),
    stated_in("encoding", OF_ENCODINGS),
    stated_in("positions", OF_SAMPLERS),
    stated_in("data", OF_TASKS, "task"),
    encodings.map(lambda block: {"encoding": block}),
    st.lists(st.sampled_from(mutants.NAMES) | values, max_size=3).map(
        lambda names: nested("evaluation.strategies", names)
    ),
)


@examples(350)
@given(documents)
def test_any_value_at_any_key(folder: Path, document: dict[str, Any]) -> None:
    found = tried(mutants.encoded(yaml.safe_dump(document, allow_unicode=True)), folder)
    [key] = document
    if isinstance(found, str):
        assert str(folder / "exp.yaml") in found
        assert key not in Experiment.model_fields or key in found


@examples(250)
@given(
    st.sampled_from([key for key in mutants.KEYS if key]),
    st.sampled_from(mutants.NUMBERS + mutants.TEXTS + mutants.BLOCKS + mutants.NAMES)
    | st.text(st.characters(), max_size=30),
)
def test_any_text_after_set(folder: Path, key: str, text: str) -> None:
    assume(key.strip())
    said = options.overrides([f"{key}={text}"], None, None, None)
    found = tried(b"model: {n_layers: 3}\n", folder, said)
    if isinstance(found, str):
        assert "--set " in found
        assert key.strip() in found or not key.isprintable()


@examples(200)
@given(st.integers(0, 2**32))
def test_any_mutant_of_a_good_config(folder: Path, number: int) -> None:
    content = mutants.config(GOOD, Random(number))
    assume(len(content) < LONGEST)
    tried(content, folder)


@examples(150)
@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(str.encode)
    | st.text("[]{}:,&*!|>'\"#-? \n\tab1", max_size=40).map(str.encode)
)
def test_any_bytes(folder: Path, content: bytes) -> None:
    tried(content, folder)


# ---- sizes that nobody means

WHOLE = [
    *(key for key in SECTIONS if key != "training.length_range"),
    *(f"positions.{key}" for names in OF_SAMPLERS.values() for key in names),
    *(f"data.{key}" for names in OF_TASKS.values() for key in names),
    *("seed", "encoding.init_std"),
]


@pytest.mark.parametrize("size", ["65537", "16777216", "9223372036854775807"])
def test_enormous_sizes_are_refused_or_cost_nothing_before_training(folder: Path, size: str) -> None:
    """With the encoding whose table is as long as there are ids, and with every sampler and task."""
    before = peak_mib()
    for name in samplers.names():
        for key in [key for key in WHOLE if not key.startswith("data.")]:
            tried(b"encoding: learned\n", folder, {"positions": name, key: size})
    for name in tasks.names():
        for key in [*(f"data.{key}" for key in OF_TASKS[name]), "evaluation.windows", "evaluation.lengths"]:
            tried(b"encoding: learned\n", folder, {"data": f"task:{name}", key: size})
    assert peak_mib() - before < MOST_MIB


def test_blocks_in_blocks_take_no_more_time_than_they_have_levels(folder: Path) -> None:
    block: Any = "rope"
    for level in range(30):
        block = {"name": ["sinks", "dape", "sliding_window"][level % 3], "encoding": block}
    tried(yaml.safe_dump({"encoding": block}).encode(), folder)
