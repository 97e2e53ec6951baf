"""What a config file and a command line state, before any check: values, and where each was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from pe_cli.errors import ConfigError, canonical
from pe_cli.schema import shown
from pe_cli.yaml_source import Source, parse_value

TASK = "task"
"""The key that makes a block under `data` a task; `task:copy` is short for `{task: copy}`."""
_OWN_OPTION = {"encoding", "data", "seed"}
"""Keys that the command line has an option of their own for."""
_LONGEST_TYPED = 1000  # an encoding with all its parts is worth showing whole


class Typed(str):
    """Text from the command line that was not typed where its key would have it: `label` is what was."""

    label: str

    def __new__(cls, text: str, label: str) -> Typed:
        typed = super().__new__(cls, text)
        typed.label = label
        return typed


class Stated:
    """Values as nested plain blocks, their origins by dotted leaf key, and the place to name in an error.

    `named_blocks` are the keys whose block may be shortened to its name, with the name they have by default.
    """

    def __init__(self, source: Source, named_blocks: Mapping[str, str]):
        self.source = source
        self.named_blocks = named_blocks
        self.values = deepcopy({key: value for key, value in source.values.items() if not key.startswith("x-")})
        self.empty = {key for key in source.empty if not key.startswith("x-")}
        self.labels: dict[str, str] = {}
        self._origins = dict.fromkeys(leaves(self.values), "file")

    def override(self, key: str, text: str) -> None:
        """Put a value from the command line in place of what the file says; text is kept as typed."""
        label = text.label if isinstance(text, Typed) else _label(key, text)
        *path, last = key.split(".")
        if not all([*path, last]):
            raise ConfigError(f"{label}: '{key}' is not a key; training.steps is one")
        value: Any = text
        if key == "data":
            value = task_block(parse_value(text, label, key) if text.lstrip().startswith("{") else text)
        elif key.split(".")[0] in self.named_blocks:
            if not text.strip():
                raise ConfigError(f"{label}: {key}: is empty")
            if text.lstrip()[0] in "[{":
                value = parse_value(text, label, key)
        self._refuse_another(key, value, label)
        block = self.values
        for depth, part in enumerate(path):
            block[part] = block = self._opened(block, ".".join(path[: depth + 1]), label)
        block[last] = value
        for known in [known for known in self._origins if _within(known, key)]:
            del self._origins[known]
        self.empty = {known for known in self.empty if not _within(known, key)}
        self._origins |= dict.fromkeys(leaves({key: value}), "command line")
        self.labels[key] = label

    def _refuse_another(self, key: str, value: Any, label: str) -> None:
        """ConfigError where an option gave the key another value, alone or in a block: which of them was meant?"""
        around = [known for known in self.labels if _within(key, known)]
        before: Any = self.values if around else None
        *path, last = key.split(".")
        for part in path:
            before = before.get(part) if isinstance(before, dict) else None
        if isinstance(before, str) and last == "name":
            before = {last: before}  # a block by its name alone
        if isinstance(before, dict) and last in before and not _alike(before[last], value):
            raise ConfigError(f"{label}: {self.labels[max(around, key=len)]} says {last} already; keep one of them")

    def _opened(self, block: dict[str, Any], key: str, label: str) -> dict[str, Any]:
        """The block under a dotted key, made where there is none; a bare name becomes a block."""
        part = key.rsplit(".", 1)[-1]
        if key == "data":
            block[part] = task_block(block.get(part, {}))
        inner = block.get(part, self.named_blocks.get(key, {}))
        if inner is None:
            inner = "none" if key in self.named_blocks else {}
        if isinstance(inner, str) and key.split(".")[0] in self.named_blocks:
            if key in self._origins:
                self._origins[f"{key}.name"] = self._origins.pop(key)
            inner = {"name": inner}
        if not isinstance(inner, dict):
            found = f"must be a block of keys, not {shown(inner)}; {label} cannot be set in it"
            raise ConfigError(f"{self.place(key)}{key}: {found}")
        return inner

    def origin(self, key: str) -> str:
        """`default`, `file` or `command line` for a dotted leaf key of the resolved experiment."""
        return self._origins.get(key) or self._origins.get(key.removesuffix(".name"), "default")

    def typed(self, key: str) -> list[str]:
        """What was typed of a key or inside it, else of the nearest block around it."""
        inside = [label for known, label in self.labels.items() if _within(known, key)]
        around = [known for known in self.labels if _within(key, known)]
        return list(dict.fromkeys(inside)) or [self.labels[known] for known in around if known == max(around, key=len)]

    def place(self, *keys: str) -> str:
        """What an error begins with: the option on the command line, else `file:line: `, else nothing."""
        for key in keys:
            if typed := self.typed(key):
                return f"{' '.join(typed)}: "
        if not self.source.where:
            return ""
        places = [self.source.place(key) for key in keys]
        return f"{max(places, key=len)}: "


def task_block(data: Any) -> Any:
    """`task:copy` as {"task": "copy"}; anything else as it is."""
    if isinstance(data, str) and data.strip().lower().startswith(f"{TASK}:"):
        return {TASK: data.strip()[len(TASK) + 1 :].strip()}
    return data


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of all values that are no block of keys (an empty block is a value)."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def printable(text: str) -> str:
    """Text as typed, where that is one line of a message."""
    return text if text.isprintable() and len(text) <= _LONGEST_TYPED else shown(text)


def _label(key: str, text: str) -> str:
    typed = printable(text)
    return f"--{key} {typed.strip() or repr(text)}" if key in _OWN_OPTION else f"--set {key}={typed}"


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are written alike; names may be written in several ways."""
    return one == other or (isinstance(one, str) and isinstance(other, str) and canonical(one) == canonical(other))


def _within(key: str, block: str) -> bool:
    return key == block or key.startswith(f"{block}.")
