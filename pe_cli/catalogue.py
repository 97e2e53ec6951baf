"""What exists: encodings, samplers, strategies, corpora and tasks as plain rows."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch

from pe_cli import samplers
from pe_cli import strategies as length_strategies
from pe_cli import tasks as synthetic
from pe_cli.built_in import BUILT_IN, Download, PythonTopics
from pe_cli.encodings import registry
from pe_cli.encodings.base import Family, ModelSpec
from pe_cli.errors import ConfigError, CorpusError, canonical, nearest
from pe_cli.experiment import ModelConfig, TrainingConfig
from pe_cli.schema import Section, shown

TYPES = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
    "object": "name or block",
    "null": "none",
}
LIMITS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


def catalogue(what: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """The rows of one kind of thing, or of all kinds; each row has at least `name` and `line`.

    Raises ConfigError, with the nearest kind, for one that does not exist.
    """
    kinds: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "encodings": encodings,
        "positions": positions,
        "strategies": strategies,
        "corpora": corpora,
        "tasks": tasks,
    }
    if what is None:
        return {kind: rows() for kind, rows in kinds.items()}
    kind = canonical(what)
    if kind not in kinds:
        raise ConfigError(f"there is no list of {shown(what)}{nearest(what, kinds)}")
    return {kind: kinds[kind]()}


def encodings() -> list[dict[str, Any]]:
    """name, family, year, reference, sees, parameters (at the default sizes of a model), options, line.

    By family, then by year.
    """
    sizes, length = ModelConfig(), TrainingConfig().length
    spec = ModelSpec(sizes.d_model, sizes.n_heads, sizes.n_layers, length, "ab", max_position=length)
    rows = []
    for name in registry.names():
        cls = registry.encoding_class(name)
        with torch.random.fork_rng(devices=[]):
            encoding = registry.build(name, spec)
        rows.append(
            {
                "name": name,
                "family": cls.family.value,
                "year": cls.year,
                "reference": cls.reference,
                "sees": encoding.sees.value,
                "parameters": sum(parameter.numel() for parameter in encoding.parameters()),
                "options": options(cls.Options, registry.canonical_block(name)),
                "line": first_line(sys.modules[cls.__module__]).removeprefix(f"{name}: "),
            }
        )
    families = [family.value for family in Family]
    return sorted(rows, key=lambda row: (families.index(row["family"]), row["year"], row["name"]))


def positions() -> list[dict[str, Any]]:
    """The samplers: name, reference, options, line."""
    return [
        {
            "name": sampler.name,
            "reference": sampler.reference,
            "options": options(sampler.Options, sampler.Options().model_dump(mode="json")),
            "line": first_line(sys.modules[sampler.__module__]).removeprefix(f"{sampler.name}: "),
        }
        for sampler in samplers.catalogue()
    ]


def strategies() -> list[dict[str, Any]]:
    """name, reference, needs, options, line."""
    return [
        {
            "name": strategy.name,
            "reference": strategy.reference,
            "needs": strategy.needs,
            "options": options(strategy.Options, strategy.Options().model_dump(mode="json")),
            "line": strategy.summary(),
        }
        for strategy in length_strategies.catalogue()
    ]


def corpora() -> list[dict[str, Any]]:
    """name, reference, url (null: nothing is fetched), size of the text in bytes (null: not there), line."""
    return [
        {
            "name": name,
            "reference": corpus.reference,
            "url": corpus.url if isinstance(corpus, Download) else None,
            "size": corpus.text.size if isinstance(corpus, Download) else size_of(corpus),
            "line": corpus.description,
        }
        for name, corpus in BUILT_IN.items()
    ]


def size_of(corpus: PythonTopics) -> int | None:
    """A Python may come without the text: the list is complete all the same."""
    try:
        return len(corpus.read())
    except CorpusError:
        return None


def tasks() -> list[dict[str, Any]]:
    """name, reference, counted, options, line."""
    return [
        {
            "name": name,
            "reference": cls.reference,
            "counted": cls.counted,
            "options": options(cls.Options, cls.Options().model_dump(mode="json")),
            "line": first_line(sys.modules[cls.__module__]).removeprefix(f"{name}: "),
        }
        for name, cls in ((name, synthetic.task_class(name)) for name in synthetic.names())
    ]


def options(section: type[Section], defaults: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """For each option: its default, its type in words, and what its docstring says."""
    properties = section.model_json_schema().get("properties", {})
    return {
        name: {
            "default": defaults[name],
            "type": type_in_words(properties[name]),
            "line": " ".join((field.description or "").split()),
        }
        for name, field in section.model_fields.items()
    }


def type_in_words(schema: dict[str, Any]) -> str:
    """What a JSON schema says: `number > 0`, `halves or interleaved`, `whole number or none`."""
    if "anyOf" in schema:
        return " or ".join(type_in_words(arm) for arm in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(str(choice) for choice in schema["enum"])
    limits = " and ".join(f"{sign} {schema[key]:.15g}" for key, sign in LIMITS.items() if key in schema)
    return f"{TYPES.get(schema.get('type', ''), 'any')} {limits}".strip()


def first_line(thing: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]
