from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import SPEC, block_of, built, random_layer
from torch import Tensor

from pe_cli.attention import allowed
from pe_cli.encodings import registry
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.dilated import Dilated
from pe_cli.errors import ConfigError
from pe_cli.model import new_model


def dilated(n_heads: int = 4, train_length: int = 16, **options: Any) -> Dilated:
    encoding = built({"name": "dilated", **options}, d_model=4 * n_heads, n_heads=n_heads, train_length=train_length)
    assert isinstance(encoding, Dilated)
    return encoding


def mask_of(encoding: PositionEncoding, length: int) -> Tensor:
    """Causal, (T, T) or (H, T, T)."""
    heads = encoding.spec.n_heads
    return allowed(encoding, block_of(encoding, random_layer(length, n_heads=heads, d_model=4 * heads)))


@pytest.mark.parametrize(("window", "dilation"), [(1, 1), (1, 3), (2, 5), (4, 2), (3, 7), (40, 2)])
def test_the_keys_are_counted_back_from_the_query(window: int, dilation: int) -> None:
    mask = mask_of(dilated(window=window, dilations=[dilation]), 23)
    assert mask.dim() == 2
    for i, row in enumerate(mask):
        wanted = {i - step * dilation for step in range(window)}
        assert set(row.nonzero().flatten().tolist()) == {j for j in wanted if j >= 0}


@pytest.mark.parametrize("heads", [3, 4])
def test_each_head_has_its_own_dilation_in_turns(heads: int) -> None:
    dilations, length = [3, 1, 2], 20
    mask = mask_of(dilated(heads, window=4, dilations=dilations), length)
    for head in range(heads):
        alone = mask_of(dilated(heads, window=4, dilations=[dilations[head % 3]]), length)
        assert torch.equal(mask[head], alone)


def test_half_of_the_heads_have_no_gaps_by_default() -> None:
    assert dilated(4).dilations == [1, 2, 1, 2]
    assert dilated(3).dilations == [1, 2, 1]
    assert dilated(1).dilations == [2]


@pytest.mark.parametrize(
    ("train_length", "dilations", "window"), [(128, None, 32), (128, [1], 64), (128, [4, 1], 16), (1, None, 1)]
)
def test_the_default_window_spans_half_the_training_length(
    train_length: int, dilations: list[int] | None, window: int
) -> None:
    assert dilated(train_length=train_length, dilations=dilations).window == window


def test_without_gaps_it_is_a_sliding_window() -> None:
    window = built({"name": "sliding_window", "window": 5}, d_model=16)
    assert torch.equal(mask_of(dilated(window=5, dilations=[1]), 20), mask_of(window, 20))
    layer = random_layer(20, d_model=16)
    for queries in (slice(0, 4), slice(9, 10), slice(7, 20)):
        assert dilated(window=5, dilations=[1]).reach(layer, queries) == window.reach(layer, queries)


def test_a_window_without_end_is_every_stride_th_character() -> None:
    strided = built({"name": "strided", "stride": 3, "pattern": "strided"}, d_model=16)
    assert torch.equal(mask_of(dilated(window=99, dilations=[3]), 20), mask_of(strided, 20))


@pytest.mark.parametrize("dilations", [[3], [1, 2], [7, 3, 1], [5, 4]])
@pytest.mark.parametrize("window", [1, 2, 4, 50])
def test_reach_has_no_key_too_many(window: int, dilations: list[int]) -> None:
    length, layer = 40, random_layer(40, d_model=16)
    encoding = dilated(window=window, dilations=dilations)
    mask = mask_of(encoding, length).expand(4, length, length).any(dim=0)
    for start in range(length):
        for stop in (start + 1, start + 2, start + 4, length):
            if stop <= length:
                keys = torch.arange(length)[encoding.reach(layer, slice(start, stop))]
                assert torch.equal(keys, mask[start:stop].any(dim=0).nonzero().flatten())


def test_as_many_queries_as_the_largest_dilation_have_all_keys_between() -> None:
    encoding, layer = dilated(window=3, dilations=[4, 1]), random_layer(40, d_model=16)
    assert encoding.reach(layer, slice(20, 24)) == slice(12, 24)
    assert isinstance(encoding.reach(layer, slice(20, 23)), Tensor)


def seen(encoding: object, length: int) -> list[int]:
    """The characters whose embeddings reach the last logits of a model of two layers."""
    model = new_model(SPEC, encoding, seed=1)
    embeddings: list[Tensor] = []
    model.embedding.register_forward_hook(lambda _module, _inputs, output: embeddings.append(output))
    last = model(torch.arange(length)[None] % len(SPEC.alphabet))[0, -1].sum()
    (gradient,) = torch.autograd.grad(last, embeddings)
    return (gradient[0].abs().amax(dim=-1) > 0).nonzero().flatten().tolist()


def test_layers_reach_n_times_the_window_less_one_times_the_dilation() -> None:
    block = {"name": "dilated", "encoding": "none", "window": 3, "dilations": [3]}
    assert seen(block, 20) == [19 - 3 * step for step in range(4, -1, -1)]
    steps = [0, 1, 2, 3, 6]
    assert seen({**block, "dilations": [1, 3]}, 20) == sorted({19 - one - other for one in steps for other in steps})


def test_a_mask_inside_is_kept() -> None:
    inner = {"name": "strided", "encoding": "none", "stride": 3, "pattern": "strided"}
    mask = mask_of(dilated(window=10, dilations=[2], encoding=inner), 16)
    assert mask[15].nonzero().flatten().tolist() == [3, 9, 15]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"n_heads": 2, "dilations": [1, 2, 3]}, r"\[1, 2, 3\] is more than one for each head.*is 2; write \[1, 2\]"),
        ({"dilations": []}, "dilations: must have at least 1 item"),
        ({"dilations": [1, 0]}, r"dilations\.1: must be greater than or equal to 1, not 0"),
        ({"dilations": [1.5]}, "dilations"),
        ({"dilations": [2**24 + 1]}, "dilations"),
        ({"window": 0}, r"encoding\.window"),
        ({"window": 2**24 + 1}, r"encoding\.window"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        dilated(**options)


def test_the_largest_numbers_work() -> None:
    mask = mask_of(dilated(window=2**24, dilations=[2**24]), 5)
    assert torch.equal(mask, torch.eye(5, dtype=torch.bool))
    keys = dilated(window=2**24, dilations=[2**24]).reach(random_layer(5, d_model=16), slice(4, 5))
    assert torch.arange(5)[keys].tolist() == [4]


def test_the_default_inner_encoding() -> None:
    assert registry.canonical_block("dilated")["encoding"]["name"] == "rope"
