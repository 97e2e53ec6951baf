"""Anchors: every k-th id gets what the inner encoding adds, and no other id gets anything."""

from __future__ import annotations

import pytest
import torch
from driving import at, built, table
from hypothesis import given
from hypothesis import strategies as st

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused


def anchored(inner: object = "sinusoidal", **options: object) -> PositionEncoding:
    return built({"name": "anchored", "encoding": inner, **options})


@given(ids=st.lists(st.integers(0, 5000), min_size=1, max_size=30), every=st.integers(1, 9))
def test_anchors_get_the_inner_vector_and_others_none(ids: list[int], every: int) -> None:
    found, inner = table(anchored(every=every), ids), table(built("sinusoidal"), ids)
    for row, full, p in zip(found, inner, ids, strict=True):
        assert torch.equal(row, full if p % every == 0 else torch.zeros(32, dtype=torch.float64))


def test_with_every_id_an_anchor_it_is_the_inner_encoding() -> None:
    assert torch.equal(table(anchored(every=1), range(40)), table(built("sinusoidal"), range(40)))


def test_other_characters_keep_their_embeddings_to_the_last_bit() -> None:
    x = torch.randn(2, 10, 32, dtype=torch.float64)
    found = anchored(every=3).embed(x, at(range(10)))
    changed = (found != x).any(dim=-1).all(dim=0)
    assert changed.nonzero().flatten().tolist() == [0, 3, 6, 9]
    assert torch.equal(found[:, ~changed], x[:, ~changed])


def test_the_id_makes_the_anchor_and_not_the_place() -> None:
    rows = table(anchored(every=4), [7, 8, 8, 3, 12])
    assert rows.abs().sum(dim=1).gt(0).tolist() == [False, True, True, False, True]


def test_only_rows_of_anchors_are_trained() -> None:
    encoding = anchored("learned", every=5)
    table(encoding, range(16)).sum().backward()
    (gradient,) = (parameter.grad for parameter in encoding.parameters())
    assert gradient is not None
    assert gradient[:, 0].nonzero().flatten().tolist() == [0, 5, 10, 15]


@pytest.mark.parametrize(
    ("strategy", "ids"),
    [("wrap", [*range(16), *range(16), 0]), ("repeat_last", [*range(16), *17 * [15]])],
)
def test_strategies_bring_back_trained_anchors(strategy: str, ids: list[int]) -> None:
    """With k = 4 the last id of 16 is no anchor; with k = 5 it is."""
    for every in (4, 5):
        encoding = anchored("learned", every=every)
        longer = strategies.apply(strategy, encoding, 16, 33)
        positions = longer.positions(torch.zeros(1, 33, dtype=torch.long))
        found = longer.embed(torch.zeros(1, 33, 32, dtype=torch.float64), positions)[0]
        assert torch.equal(found, table(encoding, ids))


def test_squeezed_ids_would_be_anchors_by_chance_only() -> None:
    encoding = anchored()
    assert not encoding.fractional
    with pytest.raises(StrategyRefused, match="interpolate has no meaning for anchored: ids between whole numbers"):
        strategies.apply("interpolate", encoding, 16, 40)


def test_it_sees_and_ends_as_its_inner_encoding_does() -> None:
    assert anchored().sees is Sees.ABSOLUTE
    encoding = anchored("learned")
    assert encoding.trained_length(16) == 16
    with pytest.raises(PositionRangeError, match="learned table has 16 rows"):
        table(encoding, [16])


def test_the_inner_encoding_may_be_a_sum_of_absolute_ones() -> None:
    mixed = anchored({"name": "mix", "parts": ["sinusoidal", "learned"]}, every=2)
    positions = mixed.positions(torch.zeros(1, 6, dtype=torch.long))
    found = mixed.embed(torch.zeros(1, 6, 32, dtype=torch.float64), positions)[0]
    assert found.abs().sum(dim=1).gt(0).tolist() == [True, False] * 3


def test_anchors_are_shown() -> None:
    encoding = anchored(every=3)
    assert encoding.numbers_at(at([0, 1, 2, 3, 4, 5, 6, 7]))["anchors"].tolist() == [0, 3, 6]
    assert encoding.numbers_at(at([5, 6, 6, 8, 9]))["anchors"].tolist() == [1, 2, 4], "characters with the id of one"
    assert "wavelengths" in encoding.numbers(8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "none"}, r"encoding\.encoding: none does nothing; name an encoding that adds"),
        ({"encoding": "alibi"}, r"encoding\.encoding: alibi acts on by_distance;"),
        ({"encoding": {"name": "mix", "parts": ["learned", "t5"]}}, r"mix acts on by_distance, embed;"),
        ({"encoding": "bipe"}, r"bipe acts on embed, positions, rotate;"),
        ({"every": 0}, r"encoding\.every"),
        ({"every": 2.5}, r"encoding\.every"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "anchored", **options})
