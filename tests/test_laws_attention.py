"""What holds for the attention of every position encoding: causality, and that every path is the written-out one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from law_cases import TRAIN_LENGTH, Case, assert_causal, blocks_of, close, every_case, text
from law_cases import one_thread as one_thread
from torch import Tensor
from torch.nn import functional as F

from pe_cli import attention
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block, LayerView

EXCLUSIVE = {"scores", "weights", "values"}

# ---- causality


@every_case
def test_no_character_sees_a_later_one_in_training(case: Case) -> None:
    model = case.model()
    assert_causal(lambda tokens: model(tokens).detach(), TRAIN_LENGTH)


@every_case
def test_no_character_sees_a_later_one_in_evaluation(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    model = case.model().eval()
    for rows in (TRAIN_LENGTH, 7, 1):
        monkeypatch.setattr(attention, "cut", blocks_of(rows))
        with torch.no_grad():
            assert_causal(model, TRAIN_LENGTH)


@every_case
def test_no_character_sees_a_later_one_in_bfloat16(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    model = case.model()
    with torch.autocast("cpu", torch.bfloat16):
        assert_causal(lambda tokens: model(tokens).detach().float(), TRAIN_LENGTH)
        monkeypatch.setattr(attention, "cut", blocks_of(7))
        with torch.no_grad():
            assert_causal(lambda tokens: model(tokens).float(), TRAIN_LENGTH)


# ---- every path is the written-out one


def layers(case: Case, length: int) -> Iterator[tuple[PositionEncoding, LayerView, Tensor]]:
    """Each layer of a model at work on random queries, keys and values; learned tables reach to the end of them."""
    encoding = case.model(max_position=length).encoding
    positions = encoding.positions(text(length))
    generator = torch.Generator().manual_seed(3)
    for index in range(case.n_layers):
        x, q, k, v = (
            torch.randn(shape, generator=generator).requires_grad_()
            for shape in [(2, length, case.spec.d_model)] + 3 * [(2, case.n_heads, length, case.d_head)]
        )
        yield encoding, LayerView(index, x, q, k, positions), v


def whole_block(encoding: PositionEncoding, layer: LayerView) -> Block:
    q, k = encoding.rotate(layer)
    everything = slice(0, q.shape[2])
    return Block(layer, encoding.prepare(layer), q, k, everything, everything, encoding)


def definition(encoding: PositionEncoding, layer: LayerView, v: Tensor) -> Tensor:
    return attention.written_out(encoding, whole_block(encoding, layer), v)


def gradients(output: Tensor, encoding: PositionEncoding, layer: LayerView, v: Tensor) -> list[Tensor]:
    """Of a fixed sum of the output by everything that it can depend on; zeros where it does not."""
    weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(4)) / math.sqrt(output.numel())
    inputs = [layer.x, layer.q, layer.k, v, *encoding.parameters()]
    found = torch.autograd.grad((output * weight).sum(), inputs, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, found, strict=True)]


def assert_same(actual: Tensor, encoding: PositionEncoding, layer: LayerView, v: Tensor) -> None:
    expected = definition(encoding, layer, v)
    close(actual, expected)
    for got, wanted in zip(gradients(actual, encoding, layer, v), gradients(expected, encoding, layer, v), strict=True):
        close(got, wanted)


@every_case
def test_training_is_the_written_out_attention(case: Case) -> None:
    for encoding, layer, v in layers(case, 2 * TRAIN_LENGTH):
        assert_same(attention.attend(encoding, layer, v), encoding, layer, v)


@every_case
def test_fused_kernels_are_the_written_out_attention(case: Case) -> None:
    for encoding, layer, v in layers(case, 2 * TRAIN_LENGTH):
        if encoding.hooks(layer.index) & EXCLUSIVE:
            continue
        block, scale = whole_block(encoding, layer), 1 / math.sqrt(case.d_head)
        assert_same(attention.masked(encoding, block, v, scale), encoding, layer, v)
        if not encoding.hooks(layer.index) & {"bias", "by_distance", "mask"}:
            plain = F.scaled_dot_product_attention(block.q, block.k, v, is_causal=True, scale=scale)
            assert_same(plain, encoding, layer, v)


@every_case
def test_the_reversed_view_is_the_written_out_attention(case: Case) -> None:
    length = 2 * TRAIN_LENGTH
    for encoding, layer, v in layers(case, length):
        hooks = encoding.hooks(layer.index)
        bias = None if hooks & (EXCLUSIVE | {"mask"}) else encoding.offset_bias(layer, length)
        if bias is None:
            continue
        vector = torch.cat([bias.flip(1), bias.new_full((len(bias), length), -math.inf)], dim=1)
        whole, pieces = whole_block(encoding, layer), []
        for rows in blocks_of(13)(slice(0, length), 0):
            keys = encoding.reach(layer, rows)
            block = replace(whole, q=whole.q[:, :, rows], k=whole.k[:, :, keys], queries=rows, keys=keys)
            pieces.append(attention.toeplitz(block, v, vector, 1 / math.sqrt(case.d_head)))
        assert_same(torch.cat(pieces, dim=2), encoding, layer, v)


@every_case
def test_query_blocks_of_any_size_give_the_same_result(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    length = 2 * TRAIN_LENGTH
    for encoding, layer, v in layers(case, length):
        with torch.no_grad():
            expected = definition(encoding, layer, v)
            close(attention.attend(encoding, layer, v), expected)
            with monkeypatch.context() as patch:
                patch.setattr(attention, "BLOCK_BYTES", 1)
                close(attention.attend(encoding, layer, v), expected)
                for rows in (1, 3, 16, 39):
                    patch.setattr(attention, "cut", blocks_of(rows))
                    close(attention.attend(encoding, layer, v), expected)
                    for few in (slice(length - 1, length), slice(length - 18, length)):
                        close(attention.attend(encoding, layer, v, few), expected[:, :, few])


def test_the_block_with_the_most_keys_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the other order each block is larger than any hole that those before it left in memory."""
    case = Case("stick_breaking")
    seen = []
    written_out = attention.written_out
    monkeypatch.setattr(attention, "cut", blocks_of(7))
    monkeypatch.setattr(
        attention, "written_out", lambda *given: seen.append(given[1].k.shape[2]) or written_out(*given)
    )
    with torch.no_grad():
        for encoding, layer, v in layers(case, 40):
            seen.clear()
            attention.attend(encoding, layer, v)
            assert seen == [40, 35, 28, 21, 14, 7]


@every_case
def test_query_blocks_of_training_have_the_gradients_of_the_definition(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = 2 * TRAIN_LENGTH
    monkeypatch.setattr(attention, "TRAINED_ROWS", 7)
    for encoding, layer, v in layers(case, length):
        assert_same(attention.attend(encoding, layer, v), encoding, layer, v)


@every_case
def test_reach_has_every_key_that_the_mask_allows(case: Case) -> None:
    length = 2 * TRAIN_LENGTH
    index = torch.arange(length)
    for encoding, layer, _ in layers(case, length):
        block = whole_block(encoding, layer)
        mask = attention.allowed(encoding, block).expand(1, case.n_heads, length, length)
        assert mask.diagonal(dim1=-2, dim2=-1).all(), "a query sees at least itself"
        allowed = mask.flatten(0, 1).any(dim=0)
        for rows in (1, 2, 5, 16, length):
            for start in range(0, length - rows + 1, 4):
                queries = slice(start, start + rows)
                keys = index[encoding.reach(layer, queries)]
                assert torch.equal(keys, keys.unique()), "in ascending order, each once"
                assert (keys < queries.stop).all()
                needed = index[allowed[queries].any(dim=0)]
                assert torch.isin(needed, keys).all()
                if "mask" not in encoding.hooks(layer.index):
                    assert encoding.reach(layer, queries) == slice(0, queries.stop)


@pytest.mark.parametrize("name", ["alibi", "t5"])
@pytest.mark.parametrize("length", [1, 31, 33, 127, 1001])
@torch.no_grad()
def test_lengths_that_no_kernel_is_made_for(name: str, length: int) -> None:
    """Rows of a bias that are not multiples of eight, whole and in blocks of queries."""
    case = Case(name)
    for encoding, layer, v in layers(case, length):
        expected = definition(encoding, layer, v)
        close(attention.attend(encoding, layer, v), expected)
        block, scale = whole_block(encoding, layer), 1 / math.sqrt(case.d_head)
        close(attention.masked(encoding, block, v, scale), expected)
