"""Encodings by name: every module of this package without a leading underscore is imported and registers one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.errors import SectionError, canonical, refused
from pe_cli.named import Registry
from pe_cli.schema import problems, shown

_encodings: Registry[PositionEncoding] = Registry(__package__, "encodings", "base", "views")
names = _encodings.names

NO_ENCODING = {"none", "null", "no", "~"}


def register(cls: type[PositionEncoding]) -> type[PositionEncoding]:
    """Make a class known by its `name`."""
    return _encodings.add(cls.name, cls)


def encoding_class(name: str) -> type[PositionEncoding]:
    """The class of an encoding; SectionError with the nearest name where there is none."""
    known = canonical(name)
    if not known:
        raise refused("", "is empty; write `none` for no position encoding")
    return _encodings.find("none" if known in NO_ENCODING else name)


def canonical_block(block: Any) -> dict[str, Any]:
    """`rope`, or a mapping with `name` and options, as {"name": …, every option: …}; nested blocks too.

    Raises SectionError with keys as the block has them.
    """
    if block is None:
        block = "none"
    if isinstance(block, Mapping):
        if "name" not in block:
            raise refused("", f"the block of {', '.join(block) or 'nothing'} has no name; write 'name: rope' in it")
        name, key = block["name"], "name"
    else:
        name, key, block = block, "", {}
    if name is not None and not isinstance(name, str):
        raise refused(key, f"{shown(name)} is neither a name nor a block with a name")
    try:
        cls = encoding_class("none" if name is None else name)
    except SectionError as error:
        raise (error.under(key) if key else error) from None
    options = {key: value for key, value in block.items() if key != "name"}
    try:
        parsed = cls.Options.model_validate(options)
    except ValidationError as error:
        raise SectionError(
            _encodings.explained(problems(error), cls.name, lambda other: other.Options.model_fields)
        ).of(cls.name) from None
    return {"name": cls.name, **parsed.model_dump(mode="json")}


def nested_block(block: Any) -> dict[str, Any]:
    """A block inside another, which names the place of what is wrong in it."""
    try:
        return canonical_block(block)
    except SectionError as error:
        raise PydanticCustomError("nested", "holds a block that was refused", {"problems": error.problems}) from None


EncodingBlock = Annotated[dict[str, Any], BeforeValidator(nested_block)]
"""The type of an option that is itself an encoding."""


def build(block: Any, spec: ModelSpec, key: str = "encoding") -> PositionEncoding:
    """The encoding of a block for a model of these sizes; SectionError where they do not fit, in a block at `key`."""
    try:
        resolved = canonical_block(block)
        cls = _encodings.classes[resolved.pop("name")]
        try:
            return cls(cls.Options.model_validate(resolved), spec)
        except SectionError as error:
            raise error.of(cls.name) from None
    except SectionError as error:
        raise error.under(key) from None
