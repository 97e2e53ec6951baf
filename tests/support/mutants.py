"""Configs made from good ones by slips, damage and malice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pe_cli import samplers, strategies, tasks
from pe_cli.encodings import registry
from pe_cli.experiment import Experiment

NUMBERS = [
    "0", "-0", "1", "-1", "2", "007", "1.5", "1e3", "1E-3", ".5", "1_000", "1__0", "_1", "0x10", "0o17", "12:30:45",
    "2024-01-01", "1e999999", "99e999999", "-99e999999", "1e-999999", "1e9999999", ".nan", "nan", ".inf", "-inf",
    "9223372036854775807", "9223372036854775808", "1e12", "1e18", "1e300", "1e-300", "1e-400", "16777216", "16777217",
    "9" * 400, "1" + "0" * 5000, "0." + "3" * 5000, "٣", "１２", "½", "∞", "+1", "1 000", "1,5", "1e", "e5", ".", "+",
]  # fmt: skip
TEXTS = [
    "", " ", "~", "null", "Null", "none", "NONE", "no", "off", "true", "True", "yes", "all", "auto", "=", "<<", "-",
    ":", "?", "#", "'", '"', "@x", "`x`", "%x", "!", "!x y", "!!str 1", "!!int x", "!!binary aGk=", "!!set {a}",
    "!!omap [a: b]", "!!python/object/apply:os.mkdir [sprung]", "!!python/name:os.system", "!%ff a", "!<tag:x> y",
    "&a 1", "&a [*a]", "&a {b: *a}", "*a", "*", "&", "|", "|9", ">-", "? a", "a: b: c", "- a", "---", "...",
    '"\\U00110000"', '"\\UFFFFFFFF"', '"\\uD800"', '"\\uDCFF"', '"\\x00"', '"\\x1b[31m"', '"a\\nb"', '"\\e"', '"\\q"',
    '"' + "\\n" * 30 + '"', "../../x", "/", "/dev/null", "/dev/zero", "~root/x", "a/b", ".", "..", "CON", "aux.txt",
    "x" * 300, "x" * 20_000, "é" * 120, "rope\u200b", "\u202eepor", "💥", "e\u0301", "\ufeff", "\x85", "\u2028",
    "task:", "task:copy", "task:copyy", "task:addition", "text.txt", "pydocs", "Py-Docs", "shakespeare",
]  # fmt: skip
BLOCKS = [
    "[]", "{}", "[[[[[]]]]]", "[1, [2, {a: b}]]", "{a: {b: {c: d}}}", "[,]", "[1,,2]", "{a}", "{a: }", "{: a}",
    "{? [a] : b}", "{[a]: b}", "{{a: b}: c}", "{1: 2}", "{a: 1, a: 2}", "{<<: {a: 1}}", "{<<: [1]}", "[", "{", "]",
    "[" * 200, "{a: " * 200, "[" * 60 + "]" * 60, "[" + "1, " * 3000 + "]", "{name: }", "{name: ~}", "{name: [rope]}",
    "[rope, alibi]", "{name: rope, name: t5}", "{name: rope, base: 1e3}", "{name: mix}", "{name: mix, parts: []}",
    "{name: mix, parts: [mix, mix]}", "{name: layered, pattern: [none]}", "{name: layered, pattern: [layered]}",
    "{name: sinks, encoding: {name: sinks, encoding: sinks}}", "{name: dape, encoding: dape}",
    "{name: randomized, max_position: 16777216, per: example}", "{name: shifted, shifts: 16777000}",
    "{name: scaled, max_shift: 1e6}", "{task: copy}", "{task: copy, max_length: 1048576}", "{task: sort, x: 1}",
    "{task: passkey, min_length: 1}", "{name: yarn, beta_fast: 4}", "[{name: yarn}, 'yarn(beta_fast=4)']",
    "yarn(beta_fast=4)", "yarn(", "yarn)(", "sinks(sinks=4, sinks=5)", "window(window=1e30)", "'self_extend(group=0)'",
]  # fmt: skip
NAMES = [*registry.names(), *strategies.names(), *samplers.names(), *tasks.names()]
KEYS = [
    *Experiment.model_fields,
    *(f"{block}.{key}" for block in ("model", "training", "evaluation")
      for key in Experiment.model_fields[block].annotation.model_fields),  # type: ignore[union-attr]
    *(f"encoding.{key}" for key in ("name", "base", "parts", "encoding", "window", "pattern", "clip", "digits", "x")),
    *(f"positions.{key}" for key in ("name", "max_position", "shifts", "max_scale", "x")),
    *(f"data.{key}" for key in ("task", "min_length", "max_length", "x")),
    "", ".", "x-a", "<<", "x", "model.d_model.x", "data..task", "\u200b", "x" * 2000,
]  # fmt: skip
"""Dotted keys: all of an experiment, some of its open blocks, and some that are none."""
LINES = [
    "x-a: &a {seed: 3, model: {n_layers: 1}}", "<<: *a", "<<: {seed: 1}", "x-b: *b", "---", "...", "%YAML 1.1",
    "%YAML " + "1" * 5000 + ".1", "%TAG ! tag:x,2000:", "? a", "? [a, b]\n: c", "\tseed: 1", "  seed: 1", "#" * 5000,
    "seed", ": seed", "- seed", "seed : 1", "'seed': 1", "!!map {seed: 1}", "\ufeffseed: 1", "seed: 1\x00", "\x1b[31m",
    "x-l: " + "y" * 100_000, "x-n: |\n  a\n  b", "SEED: 1", "&a seed: 1", "*a : 1", "x-e: &e\n", "y" * 3000 + ": 1",
]  # fmt: skip


def value(draw: Random) -> str:
    """What may stand after a colon, or does not."""
    return draw.choice(draw.choice([NUMBERS, TEXTS, BLOCKS, NAMES]))


def config(good: Sequence[bytes], draw: Random) -> bytes:
    """A good config with one to three changes, or one made of a few keys alone."""
    content = fresh(draw) if draw.random() < 0.3 else draw.choice(good)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        content = draw.choice(CHANGES)(content, draw)
    return content


def fresh(draw: Random) -> bytes:
    """One to three keys, each with some value, in blocks."""
    lines: list[str] = []
    for key in draw.sample(KEYS, draw.randint(1, 3)):
        *blocks, last = key.split(".")
        lines += [f"{'  ' * depth}{block}:" for depth, block in enumerate(blocks)]
        lines.append(f"{'  ' * len(blocks)}{last}: {value(draw)}")
    return encoded("\n".join(lines))


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _by_line(change: Callable[[list[str], int, Random], None]) -> Callable[[bytes, Random], bytes]:
    """A change of the lines of a text, at one of them."""

    def changed(content: bytes, draw: Random) -> bytes:
        lines = content.decode("utf-8", "replace").split("\n")
        change(lines, draw.randrange(len(lines)), draw)
        return encoded("\n".join(lines))

    return changed


def _delete(lines: list[str], at: int, draw: Random) -> None:
    del lines[at]


def _repeat(lines: list[str], at: int, draw: Random) -> None:
    lines.insert(draw.randrange(len(lines) + 1), lines[at])


def _swap(lines: list[str], at: int, draw: Random) -> None:
    other = draw.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _other_value(lines: list[str], at: int, draw: Random) -> None:
    key, colon, _ = lines[at].partition(":")
    lines[at] = f"{key}{colon or ':'} {value(draw)}"


def _inner_value(lines: list[str], at: int, draw: Random) -> None:
    """Another value within `{a: 1, b: 2}`, or after the last colon."""
    before, colon, rest = lines[at].rpartition(": ")
    tail = rest[len(rest.rstrip("]}")) :]
    lines[at] = f"{before}{colon}{value(draw)}{tail}"


def _other_key(lines: list[str], at: int, draw: Random) -> None:
    _, colon, rest = lines[at].partition(":")
    lines[at] = f"{draw.choice(KEYS)}{colon}{rest}"


def _indent(lines: list[str], at: int, draw: Random) -> None:
    lines[at] = draw.choice(["", " ", "  ", "   ", "\t", "\u00a0"]) + lines[at].lstrip()


def _insert(lines: list[str], at: int, draw: Random) -> None:
    lines.insert(at, draw.choice(LINES))


def _mark(lines: list[str], at: int, draw: Random) -> None:
    """A tag, an anchor, an alias, a quote or a strange character somewhere in a line."""
    place = draw.randrange(len(lines[at]) + 1)
    mark = draw.choice([*"\0\x07\x1b\x7f\x85\u2028\ufeff\u200b\ud800é💥'\"[]{}:,#&*!|>%@`\\~?-", "!!int ", "&a ", "*a"])
    lines[at] = lines[at][:place] + mark + lines[at][place:]


def _flip(content: bytes, draw: Random) -> bytes:
    changed = bytearray(content or b" ")
    for _ in range(draw.choice([1, 1, 4])):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(content: bytes, draw: Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _noise(content: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(content) + 1)
    return content[:place] + draw.randbytes(draw.choice([1, 2, 8, 200])) + content[place:]


def _long(content: bytes, draw: Random) -> bytes:
    """A text near the largest that is read."""
    piece = draw.choice([b"#", b"a: [", b"- ", b"[", b"&a ", b"x", b"? ", b"a: 1\n", b"'", b"\n", b"!", b"{a: b}, "])
    return content + b"\n" + piece * (2 ** draw.randrange(10, 18) // len(piece))


def _foreign(content: bytes, draw: Random) -> bytes:
    return content.decode("utf-8", "replace").encode(draw.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7"]), "replace")


CHANGES: list[Callable[[bytes, Random], bytes]] = [
    *map(_by_line, [_delete, _repeat, _swap, _other_value, _other_value, _other_value, _inner_value, _inner_value]),
    *map(_by_line, [_other_key, _indent, _insert, _mark, _mark]), _flip, _cut, _noise, _foreign, _long,
]  # fmt: skip
