"""Encodings by name: every module of this package without a leading underscore is imported and registers one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

import pe_cli.encodings
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.errors import ConfigError, canonical, nearest
from pe_cli.schema import explain, shown

_classes: dict[str, type[PositionEncoding]] = {}

NO_ENCODING = {"none", "null", "no", "~", ""}


def register(cls: type[PositionEncoding]) -> type[PositionEncoding]:
    """Make a class known by its `name`."""
    if cls.name in _classes and _classes[cls.name].__module__ != cls.__module__:
        raise TypeError(f"two encodings are named '{cls.name}'")
    _classes[cls.name] = cls
    return cls


@cache
def _import_all() -> None:
    for module in pkgutil.iter_modules(pe_cli.encodings.__path__):
        if not module.name.startswith("_") and module.name not in ("base", "views", "registry"):
            importlib.import_module(f"pe_cli.encodings.{module.name}")


def names() -> list[str]:
    """The names of all encodings, sorted."""
    _import_all()
    return sorted(_classes)


def encoding_class(name: str) -> type[PositionEncoding]:
    """The class of an encoding; ConfigError with the nearest name where there is none."""
    _import_all()
    known = canonical(name)
    if known in NO_ENCODING:
        known = "none"
    if known not in _classes:
        raise ConfigError(f"encoding: {shown(name)} is not known{nearest(name, names())}")
    return _classes[known]


def canonical_block(block: Any) -> dict[str, Any]:
    """`rope`, or a mapping with `name` and options, as {"name": …, every option: …}; nested blocks too."""
    if block is None:
        block = "none"
    if isinstance(block, str):
        block = {"name": block}
    if not isinstance(block, Mapping):
        raise ConfigError(f"encoding: {block!r} is neither a name nor a block with a name")
    if "name" not in block:
        raise ConfigError(f"encoding: the block {dict(block)} has no name; write 'name: rope' in it")
    name = block["name"]
    if name is not None and not isinstance(name, str):
        raise ConfigError(f"encoding.name: {name!r} is not a name")
    cls = encoding_class(name or "none")
    options = {key: value for key, value in block.items() if key != "name"}
    try:
        parsed = cls.Options.model_validate(options)
    except ValidationError as error:
        raise explain(error, f"encoding.{cls.name}") from None
    return {"name": cls.name, **parsed.model_dump(mode="json")}


EncodingBlock = Annotated[dict[str, Any], BeforeValidator(canonical_block)]
"""The type of an option that is itself an encoding."""


def build(block: Any, spec: ModelSpec) -> PositionEncoding:
    """The encoding of a block for a model of these sizes; ConfigError where they do not fit."""
    resolved = canonical_block(block)
    cls = _classes[resolved.pop("name")]
    return cls(cls.Options.model_validate(resolved), spec)
