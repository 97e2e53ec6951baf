"""Strict YAML: text becomes blocks, lists and scalars *as written*, each with the line it stands on.

The document is composed, never constructed: no tag is obeyed, nothing is executed, and `no`, `010` or
`2024-01-01` stay the text that somebody typed. What a scalar means is the schema's business.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pe_cli.errors import ConfigError

_MERGE = "tag:yaml.org,2002:merge"
_PLAIN_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}
_MOST_NODES = 20_000
_LARGEST = 2**18
_DEEPEST = 40
_LONGEST = 200  # key, which stands in the path of every key below it, and value in a message
_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True)
class Source:
    """A YAML document: nested dict, list, str and None (`~` or nothing), and the line of each dotted key."""

    where: str
    values: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()
    """Dotted keys with nothing after the colon."""

    def place(self, key: str) -> str:
        """`file.yaml:7` for the line of a dotted key, or of the nearest block around it."""
        parts = key.split(".")
        for count in range(len(parts), 0, -1):
            line = self.lines.get(".".join(parts[:count]))
            if line is not None:
                return f"{self.where}:{line}"
        return self.where


def read_file(path: Path) -> Source:
    """The document in a UTF-8 file, its byte order mark dropped. Raises ConfigError with file and place."""
    where = str(path)
    try:
        if path.is_dir():
            raise ConfigError(f"{path.absolute()}: is a directory, not a config file (of a run: its config.yaml)")
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{where}: has {path.stat().st_size:,} bytes; a config has at most {_LARGEST:,}")
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:  # of a device, which has no size before it is read
            raise ConfigError(f"{where}: has no end within {_LARGEST:,} bytes, the most that a config has")
    except FileNotFoundError:
        raise ConfigError(f"{where}: no such file (looked for {path.absolute()})") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"{where}: cannot be read: {reason} ({path.absolute()})") from None
    return parse(_decoded(content, where), where)


def parse(text: str, where: str) -> Source:
    """The document in a text, which must be one block of keys; nothing at all is an empty block."""
    node = _composed(text, where)
    walk = _Walk(where)
    values = None if node is None else walk.value(node, "", ())
    if values is None:
        return Source(where, {})
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "a single value"
        raise ConfigError(f"{where}: holds {kind}; a block of `key: value` lines is wanted")
    return Source(where, values, walk.lines, frozenset(walk.empty))


def parse_value(text: str, where: str, key: str = "") -> Any:
    """A value as it may stand after the colon of a key: text, a `[list]` or a `{block: of keys}`.

    What is begun in it and not finished is refused, as it is in a file.
    """
    node = _composed(text, where)
    walk = _Walk(where)
    value = None if node is None else walk.value(node, key, ())
    for unfinished in sorted(walk.empty):
        raise ConfigError(f"{where}: {unfinished}: is empty")
    return value


def _decoded(content: bytes, where: str) -> str:
    for mark, name in _FOREIGN_MARKS.items():
        if content.startswith(mark):
            raise ConfigError(f"{where}: is {name} (byte offset 0); save it as UTF-8")
    start = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0
    try:
        text = content[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        offset = start + error.start
        raise ConfigError(
            f"{where}: is not UTF-8: byte 0x{content[offset]:02x} at byte offset {offset}; save it as UTF-8"
        ) from None
    if "\0" in text:
        offset = start + len(text[: text.index("\0")].encode())
        raise ConfigError(f"{where}: holds a zero byte at byte offset {offset}; save it as UTF-8 text")
    return text


def _composed(text: str, where: str) -> Node | None:
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"{where}:{line}: holds the character U+{ord(text[error.position]):04X} at character offset "
            f"{error.position}, which YAML does not allow"
        ) from None
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_syntax_message(error, text, where)) from None
    except RecursionError:
        raise ConfigError(f"{where}: is nested too deeply (more than {_DEEPEST} levels)") from None
    except (ValueError, OverflowError) as error:  # an escape beyond the last character, thousands of digits
        place = f"{where}:{loader.line + 1}:{loader.column + 1}"
        raise ConfigError(f"{place}: holds an escape or a number that YAML cannot have: {error}") from None


def _syntax_message(error: yaml.MarkedYAMLError, text: str, where: str) -> str:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "is not valid YAML"
    if mark is None:
        return f"{where}: {problem}"
    lines = text.splitlines() or [""]
    at = min(mark.line, len(lines) - 1)
    message = [f"{where}:{mark.line + 1}:{mark.column + 1}: {_plain_words(problem, lines[at], mark.column)}"]
    # a missing colon or quote is often noticed only on the line after it
    message += _numbered(lines, max(at - 1, 0), at)
    start = error.context_mark
    if start is not None and start.line < at - 1 and error.context:
        message.append(f"{error.context} that began on line {start.line + 1}, column {start.column + 1}:")
        message += _numbered(lines, start.line, start.line)
    return "\n".join(message)


def _numbered(lines: Sequence[str], first: int, last: int) -> list[str]:
    return [f"  {number + 1} | {_shown(lines[number])}" for number in range(first, last + 1)]


def _plain_words(problem: str, line: str, column: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent or line[column : column + 1] == "\t":
        return "a tab is used for indentation; YAML wants spaces"
    if "could not find expected ':'" in problem:
        return "a colon is missing: `key: value` is wanted"
    if "mapping values are not allowed here" in problem:
        return "a colon is not expected here: is one missing on the line before, or is the indentation off?"
    if "unexpected end of stream" in problem:
        return "the text ends inside quotes: a closing quote is missing"
    if "expected a single document" in problem or "but found another document" in problem:
        return "a second document begins (`---`); one config is one document"
    return problem


def _shown(line: str) -> str:
    """One line of the file; a tab is made visible, because that is what the eye misses."""
    line = line.replace("\t", "\\t")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _scalar(node: Node) -> str | None:
    """The text as written; None for an unquoted empty value or `~`."""
    text = node.value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # JSON has halves
    plain = isinstance(node, ScalarNode) and node.style is None
    return None if plain and text in ("", "~") else text


class _Walk:
    """From nodes to plain values. Aliases share nodes: what is bounded is nodes visited, not written."""

    def __init__(self, where: str):
        self.where = where
        self.lines: dict[str, int] = {}
        self.empty: set[str] = set()
        self.visited = 0

    def value(self, node: Node, key: str, parents: tuple[Node, ...]) -> Any:
        self.visited += 1
        if self.visited > _MOST_NODES:
            raise ConfigError(f"{self.where}: holds more than {_MOST_NODES} values, aliases written out")
        if any(node is parent for parent in parents):
            raise self.refused(node, f"{key}: an alias refers to the block that it stands in")
        if len(parents) > _DEEPEST:
            raise self.refused(node, f"is nested too deeply (more than {_DEEPEST} levels)")
        if node.tag not in _PLAIN_TAGS:
            raise self.refused(node, f"{key}: the tag {_tag(node)} is not allowed: nothing is built from tags")
        if isinstance(node, MappingNode):
            return self.mapping(node, key, parents)
        if isinstance(node, SequenceNode):
            inner = (*parents, node)
            return [self.value(item, _joined(key, str(i)), inner) for i, item in enumerate(node.value)]
        if node.value == "" and _scalar(node) is None:
            self.empty.add(key)
        return _scalar(node)

    def mapping(self, node: MappingNode, prefix: str, parents: tuple[Node, ...]) -> dict[str, Any]:
        inner = (*parents, node)
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            name, line = self.name(key_node, prefix), key_node.start_mark.line + 1
            if name in seen:
                twice = f"stands twice, on line {seen[name]} and on line {line}; "
                twice += "write <<: [*first, *second]" if key_node.tag == _MERGE else "keep one"
                raise ConfigError(f"{self.where}:{line}: {_joined(prefix, name)}: {twice}")
            seen[name] = line
        # merged blocks first: what the block itself says then wins, values and lines alike
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = self.merge(value_node, prefix, inner)
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE:
                name = self.name(key_node, prefix)
                dotted = _joined(prefix, name)
                self.empty.discard(dotted)  # of a merged block
                own[name] = self.value(value_node, dotted, inner)
                self.lines[dotted] = seen[name]
        return {**merged, **own}

    def merge(self, node: Node, prefix: str, parents: tuple[Node, ...]) -> dict[str, Any]:
        """What `<<: *block` or `<<: [*first, *second]` brings in; the first block wins, as YAML has it."""
        values: dict[str, Any] = {}
        for block in reversed(node.value) if isinstance(node, SequenceNode) else [node]:
            if not isinstance(block, MappingNode):
                raise self.refused(node, f"{_joined(prefix, '<<')}: merges blocks of keys, and this is none")
            values.update(self.value(block, prefix, parents))
        return values

    def name(self, node: Node, prefix: str) -> str:
        if not isinstance(node, ScalarNode):
            raise self.refused(node, f"{prefix or 'a key'}: a key must be text, not a list or a block")
        if node.tag not in _PLAIN_TAGS:
            raise self.refused(node, f"{prefix or 'a key'}: the tag {_tag(node)} is not allowed")
        if not node.value.strip() or not node.value.isprintable() or len(node.value) > _LONGEST:
            text = f"{node.value[:_LONGEST]!r} is not a key of 1 to {_LONGEST} printable characters"
            raise self.refused(node, f"{prefix or 'a key'}: {text}")
        return str(node.value)

    def refused(self, node: Node, text: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(f"{self.where}:{mark.line + 1}:{mark.column + 1}: {text.removeprefix(': ')}")


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _tag(node: Node) -> str:
    return str(node.tag).replace("tag:yaml.org,2002:", "!!")


def written(values: Mapping[str, Any], comments: Mapping[str, str], indent: str = "", prefix: str = "") -> str:
    """Blocks of keys as YAML text that `parse` reads back, the comment of a dotted leaf key behind it."""
    lines = []
    for name, value in values.items():
        dotted, key = f"{prefix}{name}", f"{indent}{flow(name)}:"
        if isinstance(value, Mapping) and value:
            lines.append(f"{key}\n{written(value, comments, indent + '  ', dotted + '.')}")
        else:
            comment = f"  # {comments[dotted]}" if dotted in comments else ""
            lines.append(f"{key} {flow(value)}{comment}\n")
    return "".join(lines)


def flow(value: Any) -> str:
    """A value on one line, as `parse_value` reads it back."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if value is None:
        return "~"
    # inside a list, the dumper quotes what a comma or a bracket would break
    style = '"' if isinstance(value, str) and not value.isprintable() else None
    text = yaml.safe_dump([value], default_flow_style=True, default_style=style, allow_unicode=True, width=10**9)
    return text.strip().removeprefix("[").removesuffix("]")
