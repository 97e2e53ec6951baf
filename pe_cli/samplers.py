"""Which id each character carries in training. A sampler renumbers and delegates to the encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.errors import SectionError, canonical, nearest, refused
from pe_cli.schema import Section, problems, shown


class Sampler:
    """Ids in training; what evaluation sees is the sampler's choice too. The base leaves all as it is."""

    name: ClassVar[str]
    reference: ClassVar[str]

    class Options(Section):
        pass

    def __init__(self, options: Any) -> None:
        self.options = options

    def apply(self, encoding: PositionEncoding, spec: ModelSpec) -> PositionEncoding:
        """The encoding with these ids. ConfigError for one that cannot have them."""
        return encoding


class Sequential(Sampler):
    """Characters are counted from the start of the window: 0, 1, 2, …"""

    name = "sequential"
    reference = "the common rule"


SAMPLERS: dict[str, type[Sampler]] = {sampler.name: sampler for sampler in (Sequential,)}


def names() -> list[str]:
    """The names of all samplers, sorted."""
    return sorted(SAMPLERS)


def canonical_block(block: Any) -> dict[str, Any]:
    """A name, or a mapping with `name` and options, as {"name": …, every option: …}; else SectionError."""
    stated = dict(block) if isinstance(block, Mapping) else {"name": block}
    stated_name = stated.pop("name", None)
    if not isinstance(stated_name, str) or canonical(stated_name) not in SAMPLERS:
        raise refused("", f"{shown(stated_name)} is unknown{nearest(str(stated_name), names())}")
    name = canonical(stated_name)
    try:
        options = SAMPLERS[name].Options.model_validate(stated)
    except ValidationError as error:
        raise SectionError(problems(error)).of(name) from None
    return {"name": name, **options.model_dump(mode="json")}


def apply(block: Any, encoding: PositionEncoding, spec: ModelSpec) -> PositionEncoding:
    """The encoding with the ids of the sampler that a block names."""
    resolved = canonical_block(block)
    sampler = SAMPLERS[resolved.pop("name")]
    return sampler(sampler.Options.model_validate(resolved)).apply(encoding, spec)
