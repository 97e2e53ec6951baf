"""Strict YAML: text stays as written, and what is ambiguous or foreign is refused with its place."""

from __future__ import annotations

import codecs
import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pe_cli.errors import ConfigError
from pe_cli.yaml_source import parse, parse_value, read_file, written


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yaml")
    message = str(caught.value)
    assert len(message.splitlines()) <= 15
    assert message.startswith("f.yaml")
    return message


@pytest.mark.parametrize(
    "typed",
    [
        "no",
        "NO",
        "off",
        "on",
        "yes",
        "010",
        "1:30",
        "2024-01-01",
        "1_000",
        "1e3",
        "007",
        "null",
        "None",
        "0x1f",
    ],
)
def test_plain_scalars_stay_the_text_that_was_typed(typed: str) -> None:
    assert parse(f"a: {typed}\nb: [{typed}]\n", "f.yaml").values == {"a": typed, "b": [typed]}


def test_json_writes_rare_characters_as_two_escapes() -> None:
    values = {"a": "😀/x", "b": ["\ud800", "𝔘"]}
    assert parse(json.dumps(values), "f.yaml").values == values


def test_nothing_and_tilde_differ_from_quoted_text() -> None:
    source = parse("a:\nb: ~\nc: ''\nd: '~'\ne: {f: }\n", "f.yaml")
    assert source.values == {"a": None, "b": None, "c": "", "d": "~", "e": {"f": None}}
    assert source.empty == {"a", "e.f"}


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "~"])
def test_nothing_at_all_is_an_empty_block(text: str) -> None:
    assert parse(text, "f.yaml").values == {}


@pytest.mark.parametrize(("text", "kind"), [("- 1\n- 2\n", "a list"), ("rope\n", "a single value"), ("7", "a single")])
def test_a_document_that_is_no_block_is_refused(text: str, kind: str) -> None:
    assert kind in refusal(text)


@pytest.mark.parametrize("form", ["{}: {{c: 1}}\n", "? {}\n: {{c: 1}}\n", "outer: {{ {}: 1 }}\n"])
def test_a_key_has_a_length(form: str) -> None:
    """It stands in the path of every key below it: one of 200 kB under aliases took 4 GB."""
    assert any("a" * 200 in key for key in parse(form.format("a" * 200), "f.yaml").lines)
    assert f"'{'a' * 200}' is not a key of 1 to 200 printable characters" in refusal(form.format("a" * 201))


def test_lines_are_known_by_dotted_key() -> None:
    source = parse("a: 1\nb:\n  c: 2\n  d: {e: 3}\n", "f.yaml")
    assert source.lines == {"a": 1, "b": 2, "b.c": 3, "b.d": 4, "b.d.e": 4}
    assert source.place("b.d.unknown") == "f.yaml:4"
    assert source.place("z") == "f.yaml"


@pytest.mark.parametrize(
    ("text", "key", "first", "second"),
    [
        ("a: 1\nb: 2\na: 3\n", "a", 1, 3),
        ("t:\n  s: 1\n  u: {v: 1}\n  s: 1\n", "t.s", 2, 4),
        ("t:\n  - x\n  - {p: 1,\n     p: 2}\n", "t.1.p", 3, 4),
        ("a: 1\n'a': 2\n", "a", 1, 2),
    ],
)
def test_duplicate_keys_are_refused_with_both_lines_at_every_depth(
    text: str, key: str, first: int, second: int
) -> None:
    message = refusal(text)
    assert f"{key}: stands twice" in message
    assert f"line {first} " in message
    assert f"line {second};" in message


def test_merges_give_way_to_explicit_keys_and_to_earlier_blocks() -> None:
    text = "x: &x {p: 1, q: 2}\ny: &y {q: 3, r: 4}\nz:\n  q: 9\n  <<: *x\nw: {<<: [*x, *y]}\n"
    values = parse(text, "f.yaml").values
    assert values["z"] == {"p": "1", "q": "9"}
    assert values["w"] == {"p": "1", "q": "2", "r": "4"}


def test_a_key_of_the_block_keeps_its_own_line_beside_a_merge() -> None:
    source = parse("x: &x {p: 1,\n  q: 2}\nz:\n  q: 9\n  <<: *x\n", "f.yaml")
    assert (source.lines["z.q"], source.lines["z.p"]) == (4, 1)


@pytest.mark.parametrize("text", ["a: {<<: 3}", "a: {<<: [3]}"])
def test_a_merge_of_something_else_is_refused(text: str) -> None:
    assert "merges blocks of keys" in refusal(text)


@pytest.mark.parametrize("text", ["? [1, 2]\n: 3\n", "? {a: 1}\n: 3\n", "'': 3\n", '"a\\nb": 3\n'])
def test_keys_that_are_not_one_line_of_text_are_refused(text: str) -> None:
    assert "key" in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['exit 3']\n",
        "!!python/object:os.PathLike {}\n",
        "a: !!python/name:os.system\n",
        "a: !mine 3\n",
        "a: !!binary aGk=\n",
        "? !!python/name:os.system x\n: 3\n",
    ],
)
def test_tags_are_refused_and_nothing_is_built(text: str) -> None:
    assert "tag" in refusal(text)


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "a: &a {b: *a}\n", "a: &a {b: [{c: *a}]}\n", "a: &a {<<: *a}\n"])
def test_an_alias_to_the_block_around_it_is_refused(text: str) -> None:
    assert "alias" in refusal(text)


def test_aliases_are_allowed() -> None:
    assert parse("x: &x [1, 2]\ny: *x\nz: *x\n", "f.yaml").values["z"] == ["1", "2"]


@pytest.mark.parametrize(("first", "more"), [("[x, x]", "[{}]"), ("{k: 1}", "{{<<: [{}]}}")], ids=["lists", "merges"])
def test_an_alias_bomb_is_refused_quickly(first: str, more: str) -> None:
    lines = [f"a0: &a0 {first}"]
    for depth in range(1, 12):
        lines.append(f"a{depth}: &a{depth} " + more.format(", ".join([f"*a{depth - 1}"] * 9)))
    started = time.perf_counter()
    assert "aliases" in refusal("\n".join(lines))
    assert time.perf_counter() - started < 5


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in refusal("a: " + "[" * 3000 + "]" * 3000)
    assert "nested too deeply" in refusal("a: " + "[" * 60 + "]" * 60)


@pytest.mark.parametrize("text", ["training:\n\tsteps: 5\n", "training:\n  length: 3\n\tsteps: 5\n", "a:\n  b:\t5\n"])
def test_a_tab_is_called_a_tab(text: str) -> None:
    message = refusal(text)
    assert "tab" in message
    assert "\\t" in message  # visible in the line that is shown
    assert "\t" not in message


@pytest.mark.parametrize(
    ("text", "place", "words", "line"),
    [
        ("training:\n  steps 500\n  length: 3\n", "f.yaml:3:", "colon", "  steps 500"),
        ("name: 'abc\nseed: 1\nx: 2\n", "f.yaml:4:", "closing quote is missing", "name: 'abc"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2:", "expected ','", "a: [1, 2"),
        ("a: @x\n", "f.yaml:1:4", "cannot start any token", "a: @x"),
        ("a: *nowhere\n", "f.yaml:1:4", "nowhere", "a: *nowhere"),
        ("---\na: 1\n---\nb: 2\n", "f.yaml:3:", "one config is one document", "---"),
        ("a: b: c\n", "f.yaml:1:5", "colon", "a: b: c"),
    ],
)
def test_syntax_errors_show_place_and_line(text: str, place: str, words: str, line: str) -> None:
    message = refusal(text)
    assert message.startswith(place)
    assert words in message
    assert line in message


def test_a_very_long_line_is_not_shown_whole() -> None:
    assert len(refusal("a: b: " + "c" * 100_000)) < 1000


def test_a_control_character_is_named_with_its_place() -> None:
    assert "f.yaml:2" in refusal("a: 1\nb: \x07\n")
    assert "U+0007" in refusal("a: 1\nb: \x07\n")


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(codecs.BOM_UTF8 + b"a: 1\r\nb: 2\r\n")
    assert read_file(path).values == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: 1\n".encode("utf-16"), "UTF-16"),
        ("a: 1\n".encode("utf-32"), "UTF-32"),
        ("a: 1\n".encode("utf-16-le"), "byte offset 1"),
        ("name: é\n".encode("latin-1"), "byte offset 6"),
        (codecs.BOM_UTF8 + b"name: \xff\n", "byte offset 9"),
    ],
)
def test_other_encodings_are_refused_with_the_offset(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "foreign.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_file(path)
    assert words in str(caught.value)
    assert "UTF-8" in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_directory_and_a_missing_file_are_refused_with_the_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, words in (
        ("folder", "directory"),
        ("missing.yaml", "no such file"),
        ("a\0b", "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            read_file(Path(name))
        assert str(tmp_path / name) in str(caught.value)


def test_a_file_too_large_to_be_a_config_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: 1\n" + "#" * 2**18)
    with pytest.raises(ConfigError, match=r"large.yaml: has 262,149 bytes; a config has at most 262,144"):
        read_file(path)


def test_too_many_values_are_not_blamed_on_aliases() -> None:
    with pytest.raises(ConfigError, match="holds more than 20000 values"):
        parse(f"a: [{'1, ' * 20_000}]", "f.yaml")


def test_a_value_of_the_command_line_is_read_by_the_same_rules() -> None:
    assert parse_value("{name: rope, base: 1e3}", "--encoding") == {"name": "rope", "base": "1e3"}
    with pytest.raises(ConfigError, match="stands twice"):
        parse_value("{a: 1, a: 2}", "--encoding")


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
trees = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(), trees, max_size=4))
def test_what_is_written_is_yaml_with_the_same_values(values: dict[str, object]) -> None:
    assert yaml.safe_load(written(values, {})) == (values or None)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_text_survives_writing_and_reading(text: str) -> None:
    assert parse(written({"a": text, "b": {"c": [text, {"d": text}]}}, {"a": "file"}), "f.yaml").values == {
        "a": text,
        "b": {"c": [text, {"d": text}]},
    }
