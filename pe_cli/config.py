"""How a file and the command line make an experiment, and how an experiment is written down.

Precedence: command line > file > default. All go through the same checks; the origin of a value is kept.
The name of a built-in corpus is never taken for a file; write `./pydocs` for a file of that name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pe_cli import samplers, tasks
from pe_cli.corpus import BUILT_IN, is_built_in
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.errors import ConfigError, SectionError, canonical, message, nearest, refused
from pe_cli.experiment import (
    INSTANCES_SCORED,
    NAMED_BLOCKS,
    PROTOCOLS,
    EvaluationConfig,
    Experiment,
    ModelConfig,
    TrainingConfig,
    doubled_lengths,
    task_lengths,
    training_identity,
)
from pe_cli.homes import explained
from pe_cli.model import parameter_counts
from pe_cli.protocols import INSTANCES
from pe_cli.schema import problems, shown
from pe_cli.stated import Stated, leaves, printable, task_block
from pe_cli.yaml_source import Source, parse, parse_value, read_file, written

__all__ = [
    "PROTOCOLS",
    "EvaluationConfig",
    "Experiment",
    "ModelConfig",
    "Resolved",
    "TrainingConfig",
    "data_named",
    "doubled_lengths",
    "load_experiment",
    "resolve",
    "resolve_source",
    "spec_of",
    "to_yaml",
    "training_identity",
    "with_evaluation",
]

MOST_PARAMETERS = 2**28
"""A slip of the keyboard (a zero too many) is refused before it takes the memory of the machine."""


@dataclass(frozen=True)
class Resolved:
    """An experiment and the origin of each dotted leaf key: `default`, `file` or `command line`."""

    experiment: Experiment
    origins: dict[str, str] = field(default_factory=dict)
    path: Path | None = None


def resolve(
    path: Path | None, overrides: Mapping[str, str | int | None], defaults: Mapping[str, Any] | None = None
) -> Resolved:
    """The experiment of a config file (None: the default one) with values from the command line.

    `overrides` maps dotted keys to text as typed; None is an option that was not given. `encoding` replaces
    the whole block, `encoding.base` sets an option in it. `defaults` are blocks that stand in for a file.
    Raises ConfigError with file, line, key, value and what would be right. The encoding is built once: one
    that does not fit is refused before any data is read.
    """
    return resolve_source(read_file(path) if path else Source("", dict(defaults or {})), overrides, path)


def resolve_source(source: Source, overrides: Mapping[str, str | int | None], path: Path | None) -> Resolved:
    """The same from a document that was read already; `path` is the file that it stands in."""
    stated = Stated(source, NAMED_BLOCKS)
    for key in sorted(overrides, key=lambda key: key.count(".")):
        value = overrides[key]
        if value is not None:
            stated.override(key, value if isinstance(value, str) else str(value))
    _place_data(stated, path.parent if path else Path())
    experiment = _checked(stated, path.stem if path else "")
    _build_once(experiment, stated)
    values = experiment.model_dump(mode="json")
    return Resolved(experiment, {key: stated.origin(key) for key in leaves(values)}, path)


def load_experiment(text: str, where: str) -> Experiment:
    """The experiment in the `config.yaml` of a run directory; its corpus need not exist any more."""
    stated = Stated(parse(text, where), NAMED_BLOCKS)
    experiment = _checked(stated)
    _build_once(experiment, stated)
    return experiment


def with_evaluation(experiment: Experiment, overrides: Mapping[str, str | int | None]) -> Experiment:
    """The experiment of a trained run with other evaluation: the dotted keys are `evaluation.KEY` only."""
    stated = Stated(Source("", experiment.model_dump(mode="json")), NAMED_BLOCKS)
    for key, value in overrides.items():
        if value is not None:
            if not key.startswith("evaluation."):
                raise ConfigError(f"--set {key}={value}: {key}: a trained run takes evaluation.KEY only")
            stated.override(key, value if isinstance(value, str) else str(value))
    return _checked(stated)


def data_named(text: str) -> str | dict[str, Any]:
    """What --data names: a corpus or file as it is, a task as a block with all of its options."""
    found = parse_value(text, f"--data {text}", "data") if text.lstrip().startswith("{") else text
    try:
        return tasks.canonical_data(found)
    except SectionError as error:
        raise ConfigError(message(error.problems, lambda key: f"--data {printable(text)}: ")) from None


def to_yaml(subject: Resolved | Experiment) -> str:
    """YAML that resolves to the same experiment; for a Resolved, each value's origin stands behind it."""
    resolved = subject if isinstance(subject, Resolved) else Resolved(subject)
    return written(resolved.experiment.model_dump(mode="json"), resolved.origins)


def _place_data(stated: Stated, folder: Path) -> None:
    """Replace `data` by the name of a built-in corpus or the absolute path of a file that exists."""
    data = stated.values.get("data")
    if not isinstance(data, str) or isinstance(task_block(data), Mapping):
        return  # left out, or a task, or refused with the other keys
    if is_built_in(data):
        stated.values["data"] = canonical(data)
        return
    start = Path() if "data" in stated.labels else folder
    path = os.path.abspath(start / os.path.expanduser(data))
    if not data.strip():
        raise ConfigError(f"{stated.place('data')}data: is empty; name a corpus or a text file")
    if os.path.isdir(path):
        problem = f"data: {shown(data)} is a directory ({path}); name a corpus or a text file"
        raise ConfigError(stated.place("data") + problem)
    if not os.path.exists(path):
        problem = f"data: {shown(data)} is neither a built-in corpus nor a file (looked for {path})"
        raise ConfigError(
            stated.place("data") + problem + nearest(data, [*BUILT_IN, *(f"task:{name}" for name in tasks.names())])
        )
    stated.values["data"] = path


def _checked(stated: Stated, name: str | None = None) -> Experiment:
    """The experiment; `name` is its default name ("": the encoding's), None where it must be stated."""
    values = dict(stated.values)
    _refuse_empty(stated, stated.empty & NAMED_BLOCKS.keys())
    for key, read_block in (
        ("encoding", registry.canonical_block),
        ("positions", samplers.canonical_block),
        ("data", tasks.canonical_data),
    ):
        if key in values and (key != "data" or isinstance(task_block(values[key]), Mapping)):
            try:
                values[key] = read_block(values[key])
            except SectionError as error:
                raise explained(error.under(key).problems, stated) from None
    if name is not None:
        values.setdefault(
            "name", name or (values["encoding"]["name"] if "encoding" in values else NAMED_BLOCKS["encoding"])
        )
    try:
        experiment = Experiment.model_validate(values)
    except ValidationError as error:
        raise explained(problems(error), stated) from None
    _refuse_empty(stated, stated.empty - {"model", "training", "evaluation"})
    return _fitted(experiment, stated)


def _refuse_empty(stated: Stated, keys: set[str]) -> None:
    """`encoding: ~` says something, `encoding:` may be a line that somebody forgot to finish."""
    for key in sorted(keys):
        hint = "; write `none` for no position encoding" if key == "encoding" else ""
        raise ConfigError(f"{stated.place(key)}{key}: is empty{hint}")


def _fitted(experiment: Experiment, stated: Stated) -> Experiment:
    """The experiment with the evaluation that follows from the training length or the task, where none was stated."""
    experiment = _fitted_to_data(experiment, stated)
    evaluation, length = experiment.evaluation, experiment.training.length
    fitting: dict[str, Any] = {}
    if "lengths" not in evaluation.model_fields_set:
        fitting["lengths"] = doubled_lengths(experiment.training.longest)
    if "scored" not in evaluation.model_fields_set:
        fitting["scored"] = min(evaluation.scored, length)
    elif evaluation.scored > length:
        place = stated.place("evaluation.scored", "training.length")
        text = f"must be at most training.length {length}, not {evaluation.scored}"
        raise ConfigError(f"{place}evaluation.scored: {text}")
    return experiment.model_copy(update={"evaluation": evaluation.model_copy(update=fitting)})


def _fitted_to_data(experiment: Experiment, stated: Stated) -> Experiment:
    """A task has a protocol of its own, lengths of its own, and training windows that its longest instance fills."""
    data, evaluation, training = experiment.data, experiment.evaluation, experiment.training
    is_task = not isinstance(data, str)
    if "protocols" in evaluation.model_fields_set and (INSTANCES in evaluation.protocols) != is_task:
        of_texts = ", ".join(name for name in PROTOCOLS if name != INSTANCES)
        right = f"a task has the protocol {INSTANCES}" if is_task else f"a text has {of_texts}"
        place = stated.place("evaluation.protocols")
        raise ConfigError(f"{place}evaluation.protocols: {right}, not {', '.join(evaluation.protocols)}")
    if isinstance(data, str):
        return experiment
    if training.length_range is not None:
        raise ConfigError(
            f"{stated.place('training.length_range', 'data')}training.length_range: a task draws the length of every "
            "instance by itself, from data.min_length to data.max_length; leave it out"
        )
    needed = tasks.build(data).fed(experiment.trained_length)
    if "length" not in training.model_fields_set:
        training = training.model_copy(update={"length": needed})
    elif training.length != needed:
        place = stated.place("training.length", "data")
        raise ConfigError(
            f"{place}training.length: must be {needed}, which the longest instance of {data['task']} fills "
            f"(max_length {experiment.trained_length}), not {training.length}; left out, it follows from the task"
        )
    own = {
        "lengths": task_lengths(experiment.trained_length),
        "windows": INSTANCES_SCORED,
        "protocols": (INSTANCES,),
    }
    fitting = {key: value for key, value in own.items() if key not in evaluation.model_fields_set}
    evaluation = evaluation.model_copy(update=fitting)  # its fields count as set from here on
    try:
        training = TrainingConfig.model_validate(training.model_dump())  # the batch may be too large now
    except ValidationError as error:
        found = [problem._replace(key="training") for problem in problems(error)]
        raise ConfigError(message(found, lambda key: stated.place(key, "data"))) from None
    return experiment.model_copy(update={"training": training, "evaluation": evaluation})


def _build_once(experiment: Experiment, stated: Stated) -> None:
    """Refuse a model that cannot be built, or that is too large to be meant."""
    sizes = experiment.model
    try:
        layers, own = parameter_counts(spec_of(experiment, "ab"), experiment.encoding, experiment.positions)
        if layers + own > MOST_PARAMETERS:
            text = (
                f"{layers + own:,} parameters ({layers:,} in layers of d_model {sizes.d_model}, {own:,} in the "
                f"encoding) are more than can be meant; at most {MOST_PARAMETERS:,}"
            )
            raise refused("encoding" if own > layers else "model", text)
    except SectionError as error:
        raise ConfigError(message(error.problems, lambda key: _place_of_both(key, stated))) from None


def _place_of_both(key: str, stated: Stated) -> str:
    """Ids or an encoding do not fit the sizes: whichever the command line says, and the file."""
    sizes = "training" if key.startswith("positions") else "model"
    typed, where = dict.fromkeys(stated.typed(key) + stated.typed(sizes)), stated.source.where
    if not typed:
        return stated.place(key, sizes)
    return f"{where}: {' '.join(typed)}: " if where else f"{' '.join(typed)}: "


def spec_of(experiment: Experiment, alphabet: str) -> ModelSpec:
    """The sizes of the model that an experiment describes, with the ids of its longest window; samplers have more."""
    sizes, training = experiment.model, experiment.training
    return ModelSpec(
        sizes.d_model,
        sizes.n_heads,
        sizes.n_layers,
        training.longest,
        alphabet,
        max_position=training.longest,
        log_n=sizes.log_n,
    )
