"""What a command about encodings is asked about: encodings by name or block, and trained runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pe_cli import runs
from pe_cli.config import Experiment, ModelConfig, load_experiment, resolve
from pe_cli.encodings import registry
from pe_cli.errors import ConfigError
from pe_cli.runs import Run


@dataclass(frozen=True)
class Subject:
    """The experiment of an encoding as initialised, or of a run."""

    name: str
    experiment: Experiment
    run: Run | None = None


def named(names: Sequence[str], changes: Mapping[str, str]) -> list[Subject]:
    """The subjects of these names, each once. `changes` are settings of an experiment, by dotted key.

    Raises ConfigError for a name of neither kind, or for changes to a run; RunError for a run that is damaged.
    """
    return [subject(name, changes) for name in dict.fromkeys(names)]


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
    if "encoding" in changes:
        raise ConfigError("--set encoding: name the encodings as arguments")
    if is_encoding(name):
        return Subject(name, resolve(None, {"encoding": name, **width_for(changes), **changes}).experiment)
    if not (os.path.exists(name) or os.path.exists(runs.ROOT / name)):
        try:
            registry.encoding_class(name)
        except ConfigError as error:
            raise ConfigError(f"{error}; and there is no run of that name in {runs.ROOT.absolute()}") from None
    run = runs.open_run(name)
    if changes:
        raise ConfigError(f"--set {next(iter(changes))}: {run.path} is measured as it was trained")
    return Subject(name, load_experiment(run.config_text, str(run.path / "config.yaml")), run)


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
    """A width for the heads asked for, of the default head size, where none is given."""
    heads = changes.get("model.n_heads", "")
    if not heads.isdecimal() or "model.d_model" in changes:
        return {}
    sizes = ModelConfig()
    return {"model.d_model": str(sizes.d_model // sizes.n_heads * int(heads))}
