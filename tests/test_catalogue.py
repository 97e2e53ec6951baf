"""What `pe list` is made of, and the samplers."""

from __future__ import annotations

import json

import pytest

from pe_cli import samplers
from pe_cli.catalogue import catalogue, type_in_words
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.errors import ConfigError


def test_five_kinds_of_rows_in_strict_json() -> None:
    everything = catalogue(None)
    assert list(everything) == ["encodings", "positions", "strategies", "corpora", "tasks"]
    json.dumps(everything, allow_nan=False)
    for rows in everything.values():
        names = [row["name"] for row in rows]
        assert len(set(names)) == len(names)
        assert all(row["line"] and "\n" not in row["line"] for row in rows)


def test_encodings_are_those_of_the_registry() -> None:
    rows = catalogue("encodings")["encodings"]
    assert sorted(row["name"] for row in rows) == registry.names()
    for row in rows:
        assert row["reference"], row["name"]
        assert 1900 < row["year"] < 2100
        assert all(option["line"] for option in row["options"].values()), row["name"]


def test_a_row_of_an_encoding() -> None:
    rows = {row["name"]: row for row in catalogue("Encodings")["encodings"]}
    assert rows["alibi"] == {
        "name": "alibi",
        "family": "relative bias",
        "year": 2022,
        "reference": "Press, Smith and Lewis 2022, arXiv:2108.12409",
        "sees": "distances only",
        "parameters": 0,
        "options": {
            "max_exponent": {
                "default": 8.0,
                "type": "number > 0",
                "line": "The last head of a power-of-two count gets the slope 2 ** -max_exponent.",
            },
            "slopes": {
                "default": "fixed",
                "type": "fixed or learned",
                "line": "learned: they start at the fixed ones and are trained as logarithms, one for each head in all "
                "layers.",
            },
        },
        "line": "a penalty on the logits that grows linearly with distance.",
    }
    assert rows["learned"]["parameters"] == 128 * 128
    assert rows["t5"]["parameters"] == 32 * 4
    assert rows["rope"]["options"]["layout"]["type"] == "halves or interleaved"
    assert rows["mix"]["options"]["parts"]["default"][0]["name"] == "learned"


def test_strategies_corpora_and_tasks() -> None:
    strategies = {row["name"]: row for row in catalogue("strategies")["strategies"]}
    assert {"none", "repeat_last", "interpolate"} <= set(strategies)
    assert all(row["reference"] and row["needs"] for row in strategies.values())
    assert strategies["interpolate"]["options"]["places"]["default"] == "ends"
    assert strategies["none"]["options"] == {}
    corpora = {row["name"]: row for row in catalogue("corpora")["corpora"]}
    assert set(corpora) == {"pydocs", "shakespeare", "enwik8", "text8"}
    assert corpora["shakespeare"]["size"] == 1_115_394
    assert corpora["shakespeare"]["url"].startswith("https://")
    assert corpora["pydocs"]["url"] is None
    tasks = {row["name"]: row for row in catalogue("tasks")["tasks"]}
    assert len(tasks) == 10
    assert tasks["addition"]["options"]["order"]["type"] == "plain or least_first"
    assert all(row["reference"] and row["line"] and row["counted"] for row in tasks.values())


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'encodings'"):
        catalogue("encodngs")
    with pytest.raises(ConfigError, match="known: corpora, encodings"):
        catalogue("zzz")


def test_types_in_words() -> None:
    assert type_in_words({"type": "integer", "minimum": 2, "maximum": 16777216}) == ("whole number ≥ 2 and ≤ 16777216")
    assert type_in_words({"anyOf": [{"type": "integer"}, {"type": "null"}]}) == "whole number or none"
    assert type_in_words({}) == "any"


def test_the_sequential_sampler() -> None:
    for block in ("sequential", "Sequential", {"name": "sequential"}):
        assert samplers.canonical_block(block) == {"name": "sequential"}
    spec = ModelSpec(8, 2, 1, 4, "ab", 4)
    assert type(samplers.build("sequential", "none", spec)) is type(registry.build("none", spec))


def test_the_samplers() -> None:
    rows = catalogue("positions")["positions"]
    assert [row["name"] for row in rows] == samplers.names()
    assert set(samplers.names()) == {"sequential", "randomized", "shifted", "scaled", "skipped"}
    for row in rows:
        assert row["line"], row
        assert row["reference"], row
        assert all(option["line"] for option in row["options"].values()), row


@pytest.mark.parametrize("block", ["sequental", {"name": "seq_uential"}])
def test_an_unknown_sampler_is_refused_with_the_nearest(block: object) -> None:
    with pytest.raises(ConfigError, match="did you mean 'sequential'"):
        samplers.canonical_block(block)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (None, "nothing is no name; known: randomized, scaled"),
        ({}, "nothing is no name"),
        (3, "3 is no name"),
        ([], r"\[\] is no name"),
        ({"name": None}, "nothing is no name"),
        ({"name": "sequential", "low": 3}, "low: sequential has no such option"),
    ],
)
def test_what_is_no_sampler_is_refused(block: object, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{said}"):
        samplers.canonical_block(block)
