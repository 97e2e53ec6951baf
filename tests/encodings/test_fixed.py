from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import block_of, built, random_layer
from torch import Tensor

from pe_cli.attention import allowed
from pe_cli.encodings import registry
from pe_cli.encodings.base import Sees
from pe_cli.encodings.fixed import Fixed
from pe_cli.errors import ConfigError

# l = 4, c = 1: each row is a query, ■ a key that it sees
PICTURE = """
■········
■■·······
■■■······
■■■■·····
···■■····
···■■■···
···■■■■··
···■■■■■·
···■···■■
"""


def fixed(n_heads: int = 4, train_length: int = 16, **options: Any) -> Fixed:
    encoding = built({"name": "fixed", **options}, d_model=4 * n_heads, n_heads=n_heads, train_length=train_length)
    assert isinstance(encoding, Fixed)
    return encoding


def mask_of(encoding: Fixed, length: int) -> Tensor:
    """Causal, (T, T) or (H, T, T)."""
    heads = encoding.spec.n_heads
    return allowed(encoding, block_of(encoding, random_layer(length, n_heads=heads, d_model=4 * heads)))


def keys_of(pattern: str, i: int, stride: int, summary: int, subblock: int = 0) -> set[int]:
    """The sets as the paper writes them, and the query itself."""
    own = {j for j in range(i + 1) if j // stride == i // stride}
    end = stride - subblock * summary
    columns = {j for j in range(i + 1) if j % stride in range(end - summary, end)} | {i}
    return {"block": own, "summary": columns, "union": own | columns}[pattern]


def test_the_union_as_a_picture() -> None:
    mask = mask_of(fixed(stride=4, summary=1), 9)
    assert ["".join("■" if seen else "·" for seen in row) for row in mask.tolist()] == PICTURE.split()


@pytest.mark.parametrize(("stride", "summary"), [(1, 1), (4, 1), (5, 2), (7, 7), (30, 4)])
@pytest.mark.parametrize("pattern", ["block", "summary", "union"])
def test_the_sets_against_python_sets(pattern: str, stride: int, summary: int) -> None:
    sizes = {"stride": stride, **({} if pattern == "block" else {"summary": summary})}
    mask = mask_of(fixed(pattern=pattern, **sizes), 23)
    for i, row in enumerate(mask):
        assert set(row.nonzero().flatten().tolist()) == keys_of(pattern, i, stride, summary)


@pytest.mark.parametrize(("pattern", "first"), [("union", 0), ("heads", 4)])
def test_heads_take_turns_with_subblocks_from_the_end_of_a_block(pattern: str, first: int) -> None:
    stride, summary, subblocks, heads, length = 7, 2, 3, 7, 23
    mask = mask_of(fixed(heads, pattern=pattern, stride=stride, summary=summary, subblocks=subblocks), length)
    alone = "summary" if pattern == "heads" else "union"
    for head in range(heads):
        for i in range(length):
            turn = (head - first) % subblocks
            wanted = keys_of("block", i, stride, summary)
            if head >= first:
                wanted = keys_of(alone, i, stride, summary, turn)
            assert set(mask[head, i].nonzero().flatten().tolist()) == wanted


@pytest.mark.parametrize(("n_heads", "near_heads"), [(4, 2), (3, 2), (2, 1)])
def test_heads_are_halved(n_heads: int, near_heads: int) -> None:
    summaries: dict[str, dict[str, Any]] = {"heads": {"summary": 2}, "block": {}, "summary": {"summary": 2}}
    parts = [mask_of(fixed(n_heads, pattern=p, stride=5, **own), 21) for p, own in summaries.items()]
    assert torch.equal(parts[0], torch.stack([parts[1]] * near_heads + [parts[2]] * (n_heads - near_heads)))


@pytest.mark.parametrize(("stride", "summary"), [(4, 1), (6, 3)])
def test_every_earlier_block_is_within_two_steps(stride: int, summary: int) -> None:
    """First to the last character of that block, then to any other of it."""
    length = 30
    block = mask_of(fixed(pattern="block", stride=stride), length)
    columns = mask_of(fixed(pattern="summary", stride=stride, summary=summary), length)
    within = columns.long() @ block.long() > 0
    blocks = torch.arange(length) // stride
    assert within[blocks[None, :] < blocks[:, None]].all()


@pytest.mark.parametrize(
    ("train_length", "stride", "summary"), [(128, 11, 2), (1024, 32, 8), (16384, 128, 32), (1, 1, 1)]
)
def test_the_default_sizes(train_length: int, stride: int, summary: int) -> None:
    encoding = fixed(train_length=train_length)
    assert (encoding.stride, encoding.summary) == (stride, summary)


@pytest.mark.parametrize(
    ("pattern", "columns"),
    [("block", {})] + [(p, {"summary": 2, "subblocks": n}) for p in ("summary", "union", "heads") for n in (1, 2, 3)],
)
def test_reach_has_no_key_too_many(pattern: str, columns: dict[str, int]) -> None:
    length, layer = 40, random_layer(40, n_heads=6, d_model=24)
    encoding = fixed(6, stride=7, pattern=pattern, **columns)
    mask = mask_of(encoding, length).expand(6, length, length).any(dim=0)
    for queries in (slice(20, 21), slice(33, 36), slice(0, 3), slice(5, 30), slice(0, length)):
        keys = torch.arange(length)[encoding.reach(layer, queries)]
        assert torch.equal(keys, mask[queries].any(dim=0).nonzero().flatten())
    assert isinstance(encoding.reach(layer, slice(0, 3)), slice) == (pattern == "block")


def test_a_mask_inside_is_kept() -> None:
    window = {"name": "sliding_window", "encoding": "none", "window": 3}
    mask = mask_of(fixed(stride=4, summary=1, encoding=window), 9)
    assert mask[8].nonzero().flatten().tolist() == [7, 8]
    assert fixed(encoding=window).sees is Sees.NOTHING


def test_blocks_count_characters_and_not_ids() -> None:
    encoding, layer = fixed(stride=4, summary=1), random_layer(9, d_model=16)
    moved = layer.at(type(layer.positions)(layer.positions.ids * 3 + 2))
    assert torch.equal(allowed(encoding, block_of(encoding, moved)), mask_of(encoding, 9))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"stride": 4, "summary": 5}, r"subblocks 1 times summary 5 is more than stride 4.*write summary: 4 "),
        ({"stride": 6, "summary": 4, "subblocks": 2}, r"subblocks 2 times summary 4 .* write summary: 3 "),
        ({"stride": 2, "subblocks": 3}, r"write summary: 1 and stride: 3 "),
        ({"stride": 8, "subblocks": 5, "summary": 1}, r"encoding\.subblocks: must be at most 4, .* not 5 "),
        ({"pattern": "heads", "subblocks": 3, "summary": 1}, r"encoding\.subblocks: must be at most 2, .* not 3 "),
        ({"pattern": "block", "summary": 1}, r"encoding\.summary: changes nothing: pattern block"),
        ({"pattern": "block", "subblocks": 2}, r"encoding\.subblocks: changes nothing: pattern block"),
        ({"n_heads": 1, "pattern": "heads"}, r"encoding\.pattern: .*n_heads is 1; write pattern: union"),
        ({"pattern": "blocks"}, "must be one of union, heads, block, summary"),
        ({"stride": 0}, r"encoding\.stride"),
        ({"summary": 1.5}, r"encoding\.summary"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        fixed(**options)


@pytest.mark.parametrize(("stride", "summary", "subblocks"), [(4, 4, 1), (3, 3, 1), (2, 1, 2)])
def test_what_is_advised_can_be_built(stride: int, summary: int, subblocks: int) -> None:
    assert fixed(stride=stride, summary=summary, subblocks=subblocks).stride == stride


def test_alternate_layers_take_one_set_each() -> None:
    both: list[dict[str, Any]] = [{"pattern": "block"}, {"pattern": "summary", "summary": 1}]
    pattern = [{"name": "fixed", "stride": 4, **kind} for kind in both]
    encoding = built({"name": "layered", "pattern": pattern})
    layer = random_layer(12, index=1)
    layer = layer.at(encoding.positions(torch.zeros(1, 12, dtype=torch.long)))
    assert allowed(encoding, block_of(encoding, layer))[10].nonzero().flatten().tolist() == [3, 7, 10]


def test_the_default_inner_encoding() -> None:
    assert registry.canonical_block("fixed")["encoding"]["name"] == "rope"
