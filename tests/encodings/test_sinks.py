from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import block_of, built, logits, output, random_layer
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import allowed
from pe_cli.encodings import registry
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.sinks import Sinks
from pe_cli.encodings.views import Positions
from pe_cli.errors import ConfigError

# s = 2, w = 3: the shape of a Λ
PICTURE = """
■·······
■■······
■■■·····
■■■■····
■■■■■···
■■·■■■··
■■··■■■·
■■···■■■
"""


def sinks(train_length: int = 16, **options: Any) -> Sinks:
    encoding = built({"name": "sinks", **options}, d_model=16, train_length=train_length)
    assert isinstance(encoding, Sinks)
    return encoding


def mask_of(encoding: PositionEncoding, length: int) -> Tensor:
    return allowed(encoding, block_of(encoding, random_layer(length, d_model=16)))


def test_the_mask_as_a_picture() -> None:
    mask = mask_of(sinks(sinks=2, window=3), 8)
    assert ["".join("■" if seen else "·" for seen in row) for row in mask.tolist()] == PICTURE.split()


def test_a_query_has_at_most_s_and_w_keys() -> None:
    """What a cache has to hold: 4 + 8, however long the text."""
    mask = mask_of(sinks(window=8), 100)
    assert mask.sum(dim=1).tolist() == [min(i + 1, 12) for i in range(100)]


def test_the_paper_keeps_four_sinks_and_half_the_training_length_is_the_window() -> None:
    assert sinks().options.sinks == 4
    assert [sinks(length).window for length in (128, 33, 1)] == [64, 16, 1]


def test_without_sinks_it_is_a_sliding_window() -> None:
    window, own = built({"name": "sliding_window", "window": 5}, d_model=16), sinks(sinks=0, window=5)
    layer = random_layer(20, d_model=16)
    v = torch.randn(2, 4, 20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(output(own, layer, v), output(window, layer, v), atol=0, rtol=0)
    with_one = output(sinks(sinks=1, window=5), layer, v)
    assert (with_one - output(window, layer, v))[:, :, 5:].abs().amax(dim=(0, 1, 3)).min() > 1e-3


def test_sinks_over_the_whole_text_are_no_mask() -> None:
    layer = random_layer(20, d_model=16)
    rope = logits(built("rope", d_model=16), layer)
    torch.testing.assert_close(logits(sinks(sinks=20, window=1), layer), rope, atol=0, rtol=0)


@pytest.mark.parametrize("first", [0, 1, 4, 50])
@pytest.mark.parametrize("window", [1, 3, 50])
def test_reach_has_no_key_too_many(first: int, window: int) -> None:
    length, layer = 40, random_layer(40, d_model=16)
    encoding = sinks(sinks=first, window=window)
    mask = mask_of(encoding, length)
    for start in range(length):
        for stop in (start + 1, start + 3, length):
            if stop <= length:
                keys = torch.arange(length)[encoding.reach(layer, slice(start, stop))]
                assert torch.equal(keys, mask[start:stop].any(dim=0).nonzero().flatten())


def test_distances_to_the_sinks_stay_true() -> None:
    """Neither numbered anew nor limited: alibi charges the first character for every one in between."""
    encoding = sinks(sinks=1, window=2, encoding="alibi")
    layer = random_layer(30, d_model=16)
    plain = logits(built("alibi", d_model=16), layer)
    found = logits(encoding, layer)
    seen = found.isfinite()
    assert seen[0, 0, 29].nonzero().flatten().tolist() == [0, 28, 29]
    torch.testing.assert_close(found[seen], plain[seen], atol=0, rtol=0)


def test_the_first_characters_are_first_by_order_and_not_by_id() -> None:
    encoding, layer = sinks(sinks=2, window=3), random_layer(8, d_model=16)
    turned = layer.at(Positions(layer.positions.ids.flip(1)))
    assert torch.equal(allowed(encoding, block_of(encoding, turned)), mask_of(encoding, 8))


def test_a_strategy_reaches_the_encoding_inside() -> None:
    encoding = sinks(sinks=2, window=3)
    changed = strategies.apply("rerope", encoding, 16, 32)
    assert changed.hooks(0) == {"rotate", "mask", "reach", "prepare", "scores"}
    assert torch.equal(mask_of(changed, 32), mask_of(encoding, 32))


def test_a_mask_inside_is_kept() -> None:
    inner = {"name": "strided", "encoding": "none", "stride": 3, "pattern": "strided"}
    encoding = sinks(sinks=4, window=4, encoding=inner)
    assert mask_of(encoding, 17)[15].nonzero().flatten().tolist() == [0, 3, 12, 15]
    keys = encoding.reach(random_layer(17, d_model=16), slice(15, 16))
    assert torch.arange(17)[keys].tolist() == [0, 3, 12, 15]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"sinks": -1}, "encoding.sinks: must be greater than or equal to 0, not -1"),
        ({"window": 0}, r"encoding\.window"),
        ({"window": 2.5}, "window: must be a whole number"),
        ({"encoding": "rop"}, "did you mean 'rope'"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        sinks(**options)


def test_the_default_inner_encoding() -> None:
    assert registry.canonical_block("sinks")["encoding"]["name"] == "rope"
