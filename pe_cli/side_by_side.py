"""Encodings to look at side by side: before training with one value of an option or another, and as trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pe_cli import options, strategies
from pe_cli.config import spec_of
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.errors import ConfigError
from pe_cli.inspection import SAMPLE_TEXT, Window, window
from pe_cli.runs import Run
from pe_cli.subjects import fresh
from pe_cli.trained import fresh_model, open_trained

MOST = 12
"""More than these are no picture."""


@dataclass(frozen=True)
class Shown:
    """An encoding under a strategy at the characters of a text, and how it is called."""

    label: str
    strategy: str
    window: Window


def shown(asked: Sequence[str | Run], pairs: Sequence[str], chosen: Sequence[str], size: int) -> list[Shown]:
    """Every encoding with every value of a repeated `--set`, and every run, under every strategy.

    Beside a run, an encoding has the run's sizes and seed, and its options where the two are the same encoding.
    """
    if pairs and all(isinstance(one, Run) for one in asked):
        raise ConfigError(f"--set {pairs[0]}: a run is drawn as it was trained; name an encoding beside it")
    changes = variants(pairs)
    runs = [open_trained(one, torch.device("cpu")) for one in asked if isinstance(one, Run)]
    like = runs[0].experiment if runs else None
    found: list[Shown] = []
    for one in asked:
        if isinstance(one, Run):
            trained = runs.pop(0)
            spec = spec_of(trained.experiment, trained.alphabet)
            found += under(chosen, f"{one.path.name}, trained", trained.model.encoding, spec, size)
            continue
        for called, change in changes.items():
            experiment = fresh(one, change, like)
            label = one if one.lstrip().startswith("{") else str(experiment.encoding["name"])
            label += (f", {called}" if called else "") + (", before training" if like else "")
            alphabet = "".join(sorted(set(SAMPLE_TEXT)))
            encoding = fresh_model(experiment, alphabet).encoding
            found += under(chosen, label, encoding, spec_of(experiment, alphabet), size)
    if len(found) > MOST:
        raise ConfigError(f"{len(found)} encodings side by side: draw at most {MOST} in one picture")
    return found


def under(chosen: Sequence[str], label: str, encoding: PositionEncoding, spec: ModelSpec, size: int) -> list[Shown]:
    """At the sample text without the characters that a run does not know, or at all that it does."""
    text = "".join(character for character in SAMPLE_TEXT if character in spec.alphabet) or spec.alphabet
    found = []
    for strategy in chosen:
        called = strategies.label(strategy)
        whole = label if called == "none" else f"{label} + {called}"
        found.append(Shown(whole, called, window(encoding, spec, text, size, strategy)))
    return found


def variants(pairs: Sequence[str]) -> dict[str, dict[str, str]]:
    """Settings by what they make of an encoding: one of several for each value of the key that is repeated."""
    values: dict[str, dict[str, None]] = {}
    for pair in pairs:
        for key, value in options.settings([pair]).items():
            values.setdefault(key, {})[value] = None
    several = [key for key, given in values.items() if len(given) > 1]
    if len(several) > 1:
        raise ConfigError(f"--set: {' and '.join(several)} have several values each; give several to one key only")
    found = {}
    for number in range(max(map(len, values.values()), default=1)):
        one = {key: list(given)[number if key in several else 0] for key, given in values.items()}
        told = [key for key in one if key in several or key.startswith("encoding.")]
        found[", ".join(f"{key.removeprefix('encoding.')}={one[key]}" for key in told)] = one
    return found
