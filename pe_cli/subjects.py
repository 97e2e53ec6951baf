"""What a command about encodings is asked about: encodings by name or block, and trained runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from pe_cli import runs
from pe_cli.config import Experiment, ModelConfig, load_experiment, resolve
from pe_cli.encodings import registry
from pe_cli.errors import ConfigError, canonical, closest, meant, nearest
from pe_cli.runs import Run
from pe_cli.schema import read, shown
from pe_cli.stated import Typed, printable


@dataclass(frozen=True)
class Subject:
    """The experiment of an encoding as initialised, or of a run."""

    name: str
    experiment: Experiment
    run: Run | None = None


def named(names: Sequence[str], changes: Mapping[str, str]) -> list[Subject]:
    """The subjects of these names, each once, however it is written. `changes` are settings, by dotted key.

    Raises ConfigError for a name of neither kind, or for changes to a run; RunError for a run that is damaged.
    """
    found: dict[str, Subject] = {}
    for one in (subject(name, changes) for name in names):
        found.setdefault(str(one.run.path.resolve()) if one.run else dumps(one.experiment.encoding), one)
    return list(found.values())


def every(changes: Mapping[str, str]) -> tuple[list[Subject], dict[str, str]]:
    """All encodings, but those that do not go with the changes; these by name, with the reason."""
    found, refused = [], {}
    for name in registry.names():
        try:
            found.append(subject(name, changes))
        except ConfigError as error:
            refused[name] = str(error)
    if not found:
        raise ConfigError(next(iter(refused.values())))
    return found, refused


def subject(name: str, changes: Mapping[str, str]) -> Subject:
    if is_encoding(name):
        return Subject(name, fresh(name, changes))
    run = run_of(name)
    if run is None:
        what = f"{shown(name)} is neither an encoding nor a run in {runs.ROOT.absolute()}"
        near = [f"the run '{one}'" for one in runs.near(os.path.basename(name))[:1]]
        advice = meant([*closest(name, registry.names()), *near])
        raise ConfigError(what + (advice or nearest(name, registry.names())))
    if changes:
        raise ConfigError(f"--set {next(iter(changes))}: {run.path} is measured as it was trained")
    return Subject(name, load_experiment(run.config_text, str(run.path / "config.yaml")), run)


def fresh(name: str, changes: Mapping[str, str], like: Experiment | None = None) -> Experiment:
    """The experiment of a name or block of an encoding, with settings. ConfigError for those that name another.

    It has the sizes and the seed of `like`, and its options where the two are the same encoding.
    """
    for key in changes:
        if canonical(key) in ("encoding", "encoding.name"):
            raise ConfigError(f"--set {key}={changes[key]}: name encodings as arguments, in place of {name}")
    asked = {"encoding": Typed(name, printable(name).strip() or repr(name)), **changes}
    if like is None:
        return resolve(None, width_for(changes) | asked).experiment
    same = canonical(name) == like.encoding["name"]
    given = {**sizes(like), **({"encoding": like.encoding} if same else {})}
    return resolve(None, changes if same else asked, given).experiment


def run_of(name: str) -> Run | None:
    """The run at a path or of a name; None where nothing is there. RunError for one that is damaged."""
    return runs.open_run(name) if os.path.exists(name) or os.path.exists(runs.ROOT / name) else None


def is_encoding(name: str) -> bool:
    """Whether the text is a block, or the name of an encoding; the empty text is left to the config to refuse."""
    if name.lstrip().startswith("{") or not name.strip():
        return True
    try:
        registry.encoding_class(name)
    except ConfigError:
        return False
    return True


def width_for(changes: Mapping[str, str]) -> dict[str, str]:
    """The width for the heads asked for, of the default head size, in place of the default width."""
    own, heads = ModelConfig(), changes.get("model.n_heads", "")
    try:
        count = int(read(int, heads))
    except ValueError:
        return {}
    width = str(own.d_model // own.n_heads * count)
    return {"model.d_model": Typed(width, f"--set model.n_heads={printable(heads)}")} if count > 0 else {}


def sizes(experiment: Experiment) -> dict[str, Any]:
    """What an encoding is built for, as a file would state it."""
    model, span = experiment.model, experiment.training.length_range
    return {
        "model": {"d_model": str(model.d_model), "n_heads": str(model.n_heads), "n_layers": str(model.n_layers)},
        "training": {
            "length": str(experiment.training.length),
            "length_range": list(map(str, span)) if span else None,
        },
        "seed": str(experiment.seed),
    }
