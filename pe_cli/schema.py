"""The strict base of every block of keys: text in, checked values out, and errors that a person can act on.

YAML and the command line both hand over text, so that one set of rules decides what a number, a switch or a
name may look like, whoever wrote it. Real Python values pass through the same checks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pe_cli.errors import Problem, SectionError, canonical, closest, meant, nearest

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?[0-9]{{1,6}})?")
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NOTHING = {"", "~", "null", "none"}
_ARM = re.compile(r"(constrained-)?(int|float|bool|str)|(function|literal|list|tuple|dict)\b.*\W.*")
"""What pydantic puts after the key for the arm of a union."""
_LARGEST = 2**63 - 1
_SHOWN_CHARACTERS = 160


class Section(BaseModel):
    """A block of keys: text is parsed by the annotation of a field, and unknown keys are a ValidationError."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, block: Any) -> Any:
        if isinstance(block, cls):
            return block
        if block is None:
            return {}
        if not isinstance(block, Mapping):
            raise PydanticCustomError("not_a_block", "must be a block of keys")
        context = {"keys": [str(key) for key in block if key not in cls.model_fields]}
        if context["keys"]:
            raise PydanticCustomError("unknown_keys", "unknown key", context | {"known": list(cls.model_fields)})
        return block

    @field_validator("*", mode="before")
    @classmethod
    def _from_text(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        return value if reads_itself(field.metadata) else read(field.annotation, value)


def problems(error: ValidationError) -> list[Problem]:
    """Every problem of a block, in the order of its keys."""
    found: dict[str, Problem] = {}
    for detail in error.errors(include_url=False):
        kind, context, parts = detail["type"], detail.get("ctx", {}), [str(part) for part in detail["loc"]]
        if kind == "literal_error":
            continue  # `read` has checked choices: this is an arm of a union, and not the only complaint
        if parts and _ARM.fullmatch(parts[-1]):
            parts.pop()
        key = ".".join(parts)
        if kind == "unknown_keys":
            for name in context["keys"]:
                dotted = f"{key}.{name}" if key else name
                text = "unknown key" + (nearest(name, context["known"]) if context["known"] else "")
                found.setdefault(dotted, Problem(dotted, text, tuple(context["known"])))
        elif kind == "nested":
            inner = SectionError(context["problems"]).under(key)
            found |= {problem.key: problem for problem in inner.problems if problem.key not in found}
        elif kind == "missing":
            found.setdefault(key, Problem(key, "is missing"))
        elif kind == "value_error":
            found.setdefault(key, Problem(key, str(context["error"])))
        else:
            phrase = re.sub(r"^\w+ should( be)?", r"must\1", detail["msg"]).split(" after validation")[0]
            found.setdefault(key, Problem(key, f"{phrase}, not {shown(detail['input'])}"))
    return list(found.values())


def shown(value: Any) -> str:
    """A value as an error shows it: quoted, and not a page of it."""
    if isinstance(value, Mapping):
        return "a block of keys"
    text = "nothing" if value is None else repr(value)
    if len(text) > _SHOWN_CHARACTERS:
        return f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
    return text


def read(annotation: Any, value: Any) -> Any:
    """The value that a field with this annotation takes from text, or from a Python value.

    Raises ValueError with a phrase that names the value and says what would be right.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return value if reads_itself(metadata) else read(inner, value)
    if origin in (Union, UnionType):
        return _read_union(get_args(annotation), value)
    if annotation is Any or (isinstance(annotation, type) and issubclass(annotation, Section)):
        return value
    if value is None and annotation is not NoneType:
        raise ValueError(f"is empty: {_wanted(annotation)} is wanted")
    if origin is Literal:
        return _read_choice({str(choice): choice for choice in get_args(annotation)}, value)
    if origin in _LISTS or annotation in _LISTS:
        return _read_list(get_args(annotation) or (str, ...), value)
    if origin in _MAPPINGS or annotation in _MAPPINGS:
        return _read_mapping(get_args(annotation), value)
    reader = _READERS.get(annotation)
    return reader(value) if reader else value


def reads_itself(metadata: Iterable[Any]) -> bool:
    """Whether a type brings its own reading of text along."""
    return any(isinstance(item, BeforeValidator) for item in metadata)


def _read_nothing(value: Any) -> None:
    if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
        return None
    raise ValueError(f"must be none, not {shown(value)}")


def _read_whole(value: Any) -> int:
    exact = Decimal("0.5")
    if type(value) is int or (isinstance(value, float) and math.isfinite(value)):
        exact = Decimal(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        exact = Decimal(value.strip().replace("_", ""))
    # the size is compared before anything is computed: 1e999999 has a million digits, and 99e999999 overflows
    if exact.copy_abs() > _LARGEST:
        raise ValueError(f"must be a whole number of at most {_LARGEST}, not {shown(value)}")
    if exact != exact.to_integral_value():
        raise ValueError(f"must be a whole number, not {shown(value)}")
    return int(exact)


def _read_real(value: Any) -> float:
    number = math.nan
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST):
        number = float(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value.strip().replace("_", ""))
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, not {shown(value)}")
    return number


def _read_switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _SWITCHES:
        return _SWITCHES[value.strip().lower()]
    raise ValueError(f"must be true or false, not {shown(value)}")


def _read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"must be text, not {shown(value)}")


def _read_choice(choices: Mapping[str, Any], value: Any) -> Any:
    by_name = {canonical(name): choice for name, choice in choices.items()}
    if isinstance(value, str | int | float) and canonical(str(value)) in by_name:
        return by_name[canonical(str(value))]
    near = meant(closest(str(value), choices))
    raise ValueError(f"must be one of {', '.join(choices)}, not {shown(value)}{near}")


def _read_list(items: tuple[Any, ...], value: Any) -> list[Any]:
    """A list; text with commas (`128,256`, also in brackets); or one value alone."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1].strip()
        parts: Iterable[Any] = [part.strip() for part in text.split(",")] if text else []
        if "" in parts:
            raise ValueError(f"must be a list without an empty place between the commas, not {shown(value)}")
    elif isinstance(value, Sequence | set | frozenset):
        parts = value
    elif isinstance(value, Mapping):
        raise ValueError(f"must be a list, not {shown(value)}")
    else:
        parts = [value]
    if len(items) == 2 and items[1] is not ...:
        return [read(kind, part) for kind, part in zip(items, parts, strict=False)]
    return [read(items[0], part) for part in parts]


def _read_mapping(kinds: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a block of keys, not {shown(value)}")
    return {key: read(kinds[1], item) for key, item in value.items()} if kinds else value


def _read_union(arms: Sequence[Any], value: Any) -> Any:
    """The first arm that takes the value, the narrowest first; text takes almost anything and comes late."""
    complaints = []
    for arm in sorted(arms, key=_breadth):
        if arm is NoneType and isinstance(value, str) and str in arms:
            continue  # a key that takes text takes `none` as written
        try:
            return read(arm, value)
        except ValueError as complaint:
            complaints.append(str(complaint))
    named = [_wanted(arm) for arm in sorted(arms, key=_breadth) if arm is not NoneType]
    raise ValueError(complaints[-1] if len(named) == 1 else f"must be {' or '.join(named)}, not {shown(value)}")


def _breadth(annotation: Any) -> int:
    if get_origin(annotation) is Annotated:
        return _breadth(get_args(annotation)[0])
    kind = get_origin(annotation) or annotation
    order: tuple[Any, ...] = (Literal, NoneType, bool, int, float, str)
    return order.index(kind) if kind in order else len(order)


def _wanted(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _wanted(get_args(annotation)[0])
    if origin is Literal:
        choices = ", ".join(str(choice) for choice in get_args(annotation))
        return f"one of {choices}" if "," in choices else choices
    if origin in _LISTS or annotation in _LISTS:
        return "a list"
    if origin in _MAPPINGS or annotation in _MAPPINGS:
        return "a block of keys"
    names: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(annotation, "a value")


_LISTS: tuple[Any, ...] = (list, tuple, set, frozenset, Sequence)
_MAPPINGS: tuple[Any, ...] = (dict, Mapping)
_READERS: dict[Any, Callable[[Any], Any]] = {
    NoneType: _read_nothing,
    int: _read_whole,
    float: _read_real,
    bool: _read_switch,
    str: _read_text,
}
