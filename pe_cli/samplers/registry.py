"""Samplers by name: every module of this package without a leading underscore registers one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pe_cli.encodings import registry as encodings
from pe_cli.encodings.base import LARGEST_COUNT, ModelSpec, PositionEncoding, Sees
from pe_cli.errors import SectionError, refused
from pe_cli.named import Registry
from pe_cli.samplers.base import Sampler
from pe_cli.schema import Section, problems, shown

_samplers: Registry[Sampler] = Registry(__package__, "samplers", "base")
names = _samplers.names


def register(cls: type[Sampler]) -> type[Sampler]:
    """Make a class known by its `name`."""
    return _samplers.add(cls.name, cls)


def catalogue() -> list[type[Sampler]]:
    """All samplers by name."""
    return [_samplers.classes[name] for name in names()]


def canonical_block(block: Any) -> dict[str, Any]:
    """A name, or a mapping with `name` and options, as {"name": …, every option: …}; else SectionError."""
    stated = dict(block) if isinstance(block, Mapping) else {"name": block}
    stated_name = stated.pop("name", None)
    if not isinstance(stated_name, str):
        raise refused("", f"{shown(stated_name)} is no name; known: {', '.join(names())}")
    cls = _samplers.find(stated_name)
    try:
        options = cls.Options.model_validate(stated)
    except ValidationError as error:
        raise SectionError(_samplers.explained(problems(error), cls.name, lambda other: other.Options.model_fields)).of(
            cls.name
        ) from None
    return {"name": cls.name, **options.model_dump(mode="json")}


def _parsed(block: Any) -> tuple[type[Sampler], Section]:
    """The class of the sampler that a block names, and its options."""
    resolved = canonical_block(block)
    cls = _samplers.classes[resolved.pop("name")]
    return cls, cls.Options.model_validate(resolved)


def build(positions: Any, encoding: Any, spec: ModelSpec) -> PositionEncoding:
    """The encoding of a block, built for the ids of a sampler and given them.

    `spec.max_position` is the longest window of training. SectionError where encoding and sampler do not combine.
    """
    cls, options = _parsed(positions)
    try:
        chosen = cls(options, spec)
        if chosen.ids() > max(LARGEST_COUNT, chosen.window):
            text = f"ids up to {chosen.ids() - 1}"
            raise refused("", f"{text}: must be at most {LARGEST_COUNT}, where float32 still tells ids apart")
    except SectionError as error:
        raise error.of(cls.name).under("positions") from None
    built = encodings.build(encoding, chosen.widened(spec))
    applied = chosen.applied(built)
    if applied is not built:
        if built.sees is Sees.NOTHING:
            text = f"{built.name} sees no ids, and {chosen.name} would change nothing; write `positions: sequential`"
            raise refused("positions", text)
        built.map(lambda part: _with_ids_to_change(part, chosen))
    if chosen.fractional and not built.fractional:
        text = f"{chosen.name} draws ids between whole numbers, which mean nothing to {built.name}"
        raise refused("positions", text)
    return applied


def _with_ids_to_change(part: PositionEncoding, chosen: Sampler) -> PositionEncoding:
    if "positions" in part.hooks(0):
        text = f"{part.name} reads its ids from the text and cannot be given those of {chosen.name}"
        raise refused("positions", f"{text}; write `positions: sequential`")
    return part


def notes(positions: Any) -> list[str]:
    """What a table of losses must say of the ids of a sampler."""
    cls, options = _parsed(positions)
    return cls.notes(options)
