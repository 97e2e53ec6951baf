"""From an experiment to a model with fresh weights, and from a run directory to the trained one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor

from pe_cli.config import Experiment, load_experiment, spec_of
from pe_cli.errors import RunError
from pe_cli.model import Transformer, new_model
from pe_cli.runs import Run
from pe_cli.schema import shown


@dataclass(frozen=True)
class Trained:
    """A run whose training has ended: its experiment, alphabet, and the model in evaluation mode."""

    run: Run
    experiment: Experiment
    alphabet: str
    model: Transformer


def fresh_model(experiment: Experiment, alphabet: str) -> Transformer:
    """The model of an experiment before the first step."""
    options = experiment.model
    return new_model(
        spec_of(experiment, alphabet),
        experiment.encoding,
        experiment.seed,
        positions=experiment.positions,
        dropout=options.dropout,
        qk_norm=options.qk_norm,
    )


def fill(model: Transformer, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a model. RuntimeError for those of another; torch alone would convert kinds of numbers."""
    for name, own in model.state_dict().items():
        if name in weights and weights[name].dtype != own.dtype:
            raise RuntimeError(f"{name} is {weights[name].dtype}, not {own.dtype}")
    model.load_state_dict(weights)


def computes(experiment: Experiment) -> dict[str, Any]:
    """What decides, with the weights, which numbers a model computes. run.json keeps it for `open_trained`."""
    sizes, lengths = {"d_model", "n_heads", "n_layers", "qk_norm", "log_n"}, {"length", "length_range"}
    parts: dict[str, Any] = {"encoding": True, "positions": True, "model": sizes, "training": lengths}
    return experiment.model_dump(mode="json", include=parts)


def changed(then: Any, now: Any, key: str = "") -> str | None:
    """The first dotted key of `then` with another value in `now`; what only `now` has is no change."""
    if isinstance(then, dict) and isinstance(now, dict):
        pairs = [(name, value, now.get(name)) for name, value in then.items()]
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = [(str(place), *both) for place, both in enumerate(zip(then, now, strict=True))]
    else:
        return None if then == now else f"{key} is {shown(now)}, and the run was trained with {shown(then)}"
    found = (changed(one, other, f"{key}.{name}" if key else name) for name, one, other in pairs)
    return next((text for text in found if text is not None), None)


UNFINISHED = "`pe train` with --resume goes on with it, and another run may be named instead"


def open_trained(run: Run, device: torch.device) -> Trained:
    """The model of a run. RunError for one that has no weights yet, or weights that do not fit its config."""
    if run.status != "finished":
        advice = {"diverged": "its weights are not usable", "failed": "train it again with --force"}
        raise RunError(f"{run.path}: this run is {run.status}: {advice.get(run.status, UNFINISHED)}")
    experiment = load_experiment(run.config_text, str(run.path / "config.yaml"))
    if (difference := changed(run.info.get("computes", {}), computes(experiment))) is not None:
        raise RunError(f"{run.path / 'config.yaml'}: {difference}: put it back, or train again with --force")
    alphabet = run.text("alphabet")
    if alphabet != "".join(sorted(set(alphabet))):  # else characters would get each other's ids, without a sign
        raise RunError(f"{run.path / 'run.json'} is damaged: alphabet is not in order: train it again with --force")
    model = fresh_model(experiment, alphabet)
    try:
        fill(model, run.load_weights())
    except RuntimeError as error:
        what = shorten(str(error), 200, placeholder="…")
        raise RunError(f"{run.path}: the weights do not fit config.yaml: {what}") from None
    return Trained(run, experiment, alphabet, model.to(device).eval())
