"""From an experiment to a model with fresh weights, and from a run directory to the trained one."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pe_cli.config import Experiment, load_experiment
from pe_cli.encodings.base import ModelSpec
from pe_cli.errors import RunError
from pe_cli.model import Transformer, new_model
from pe_cli.runs import Run


@dataclass(frozen=True)
class Trained:
    """A run whose training has ended: its experiment, alphabet, and the model in evaluation mode."""

    run: Run
    experiment: Experiment
    alphabet: str
    model: Transformer


def spec_of(experiment: Experiment, alphabet: str) -> ModelSpec:
    """The sizes of the model that an experiment describes."""
    sizes, length = experiment.model, experiment.training.length
    return ModelSpec(sizes.d_model, sizes.n_heads, sizes.n_layers, length, alphabet, max_position=length)


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
        log_n=options.log_n,
    )


def open_trained(run: Run, device: torch.device) -> Trained:
    """The model of a run. RunError for one that has no weights yet, or weights that do not fit its config."""
    if run.status != "finished":
        advice = {"diverged": "its weights are not usable", "failed": "train it again with --force"}
        raise RunError(f"{run.path}: this run is {run.status}: {advice.get(run.status, 'go on with --resume')}")
    experiment = load_experiment(run.config_text, str(run.path / "config.yaml"))
    model = fresh_model(experiment, run.info["alphabet"])
    try:
        model.load_state_dict(run.load_weights())
    except RuntimeError as error:
        raise RunError(f"{run.path}: the weights do not fit config.yaml: {error}") from None
    return Trained(run, experiment, run.info["alphabet"], model.to(device).eval())
