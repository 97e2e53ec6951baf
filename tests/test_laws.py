"""What holds for every position encoding, checked without knowing which it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli import attention, strategies
from pe_cli.encodings import registry
from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import PositionRangeError, StrategyRefused
from pe_cli.model import Transformer, new_model

TRAIN_LENGTH = 20
ALPHABET = "\n .abcdefghi"
EXCLUSIVE = {"scores", "weights", "values"}


@dataclass(frozen=True)
class Case:
    block: Any
    n_heads: int = 4
    d_head: int = 4
    n_layers: int = 2

    @property
    def spec(self) -> ModelSpec:
        width = self.n_heads * self.d_head
        return ModelSpec(width, self.n_heads, self.n_layers, TRAIN_LENGTH, ALPHABET, TRAIN_LENGTH)

    def model(self, seed: int = 1) -> Transformer:
        """With every parameter moved a little: a table that starts at zero matters too."""
        model = new_model(self.spec, self.block, seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        return model


def window(encoding: str, size: int) -> dict[str, Any]:
    return {"name": "sliding_window", "encoding": encoding, "window": size}


def strided(encoding: str, pattern: str) -> dict[str, Any]:
    return {"name": "strided", "encoding": encoding, "pattern": pattern}


def bipe(relative: str, scale: float) -> dict[str, Any]:
    return {"name": "bipe", "relative": relative, "segment_scale": scale}


CASES = {name: Case(name, n_layers=4 if name == "layered" else 2) for name in registry.names()} | {
    "alibi, 6 heads": Case("alibi", n_heads=6),
    "rope, interleaved": Case({"name": "rope", "layout": "interleaved"}),
    "rope, part of the head": Case({"name": "rope", "rotary_fraction": 0.5}),
    "stick_breaking, remainder": Case({"name": "stick_breaking", "remainder": True}),
    "window of two": Case(window("none", 2)),
    "window, alibi": Case(window("alibi", 5)),
    "window, stick_breaking": Case(window("stick_breaking", 5)),
    "strided, alibi": Case(strided("alibi", "union")),
    "strided, one set, none": Case(strided("none", "strided")),
    "strided, near set, fox": Case(strided("fox", "local")),
    "strided, by heads, t5": Case(strided("t5", "heads"), n_heads=3),
    "strided, shaw": Case(strided("shaw", "strided")),
    "strided window": Case({"name": "sliding_window", "encoding": strided("rope", "strided"), "window": 9}),
    "mix, learned and t5": Case({"name": "mix", "parts": ["learned", "t5"]}),
    "mix, alibi and window": Case({"name": "mix", "parts": ["alibi", window("none", 6)]}),
    "mix, two masks": Case({"name": "mix", "parts": [strided("fox", "strided"), window("rope", 11)]}),
    "mix, rope and shaw and alibi": Case({"name": "mix", "parts": ["rope", "shaw", "alibi"]}),
    "mix, stick_breaking and rope": Case({"name": "mix", "parts": ["stick_breaking", "rope"]}),
    "mix around layers": Case({"name": "mix", "parts": ["sinusoidal", {"name": "layered", "pattern": ["t5", "none"]}]}),
    "layers, rope and none": Case({"name": "layered", "pattern": ["rope", "none"]}, n_layers=3),
    "layers, windows and shaw": Case(
        {"name": "layered", "pattern": [window("t5", 5), "shaw", window("t5", 5)]}, n_layers=3
    ),
    "layers of a mix": Case({"name": "layered", "pattern": [{"name": "mix", "parts": ["rope", "t5"]}, "fox"]}),
    "bipe, alibi": Case(bipe("alibi", 0.5)),
    "bipe, window": Case({"name": "bipe", "relative": window("t5", 7), "absolute": "learned"}),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small lose more by sharing them out than they take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_name = pytest.mark.parametrize("name", registry.names())


def text(length: int, batch: int = 2, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(len(ALPHABET), (batch, length), generator=generator)


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def blocks_of(rows: int) -> Callable[[slice, int], Iterator[slice]]:
    """In the place of `attention.cut`: blocks of a given number of queries."""

    def cut(queries: slice, bytes_per_query: int) -> Iterator[slice]:
        for start in range(queries.start, queries.stop, rows):
            yield slice(start, min(start + rows, queries.stop))

    return cut


# ---- causality


def assert_causal(run: Callable[[Tensor], Tensor], length: int) -> None:
    before = text(length)
    logits = run(before)
    for place in (1, length // 2, length - 1):
        after = torch.cat((before[:, :place], (before[:, place:] + 1) % len(ALPHABET)), dim=1)
        changed = run(after)
        close(changed[:, :place], logits[:, :place], 1e-6)
        assert not torch.equal(changed[:, place:], logits[:, place:])


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
    """Each layer of a model at work on random queries, keys and values."""
    encoding = case.model().encoding
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


# ---- what is declared is so


def with_ids(model: Transformer, change: Callable[[Positions], Positions]) -> Transformer:
    return model.using(Renumbered(model.encoding, change))


@every_case
def test_sees_is_what_the_logits_show(case: Case) -> None:
    length = 12
    model, tokens = case.model().eval(), text(length)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(5))
    shifted = with_ids(model, lambda positions: replace(positions, ids=positions.ids + 7))
    permuted = with_ids(model, lambda positions: Positions(positions.ids[:, order]))
    with torch.no_grad():
        logits = model(tokens)
        by_shift, by_order = ((other(tokens) - logits).abs().max() for other in (shifted, permuted))
    measured = Sees.ABSOLUTE if by_shift > 1e-3 else Sees.DISTANCE if by_order > 1e-3 else Sees.NOTHING
    assert model.encoding.sees is measured
    if measured is not Sees.ABSOLUTE:
        assert by_shift < 1e-4
    if measured is Sees.NOTHING:
        assert by_order < 1e-4


@every_case
def test_ids_between_whole_numbers_have_a_meaning_where_declared(case: Case) -> None:
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    if model.encoding.sees is Sees.NOTHING or not model.encoding.fractional:
        return

    def logits(rounded: Callable[[Tensor], Tensor]) -> Tensor:
        changed = with_ids(model, lambda positions: Positions(rounded(positions.ids / 3)))
        with torch.no_grad():
            return changed(tokens)

    between = logits(lambda ids: ids)
    for rounded in (torch.floor, torch.round, torch.ceil):
        assert (logits(rounded) - between).abs().max() > 1e-4


@every_case
def test_ids_in_batch_shape_are_the_same_ids(case: Case) -> None:
    """Samplers give each row of a batch its own ids, and no step: the distances are then evaluated."""
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    spread = with_ids(model, lambda positions: Positions(positions.ids.expand(2, -1).clone()))
    with torch.no_grad():
        close(spread(tokens), model(tokens))
    close(spread(tokens), model(tokens))


@every_name
def test_an_encoding_is_documented(name: str) -> None:
    cls = registry.encoding_class(name)
    assert cls.name == name
    assert ".. math::" in (cls.__doc__ or "")
    assert isinstance(cls.family, Family)
    assert str(cls.year) in cls.reference
    assert (Path(__file__).parent / "encodings" / f"test_{name}.py").is_file()
    for option, field in cls.Options.model_fields.items():
        assert field.description, f"{option} has no docstring"


@every_name
def test_default_options_decode_from_nothing(name: str) -> None:
    cls = registry.encoding_class(name)
    assert cls.Options.model_validate({}) == cls.Options()
    block = registry.canonical_block(name)
    assert registry.canonical_block(block) == block
    registry.build(block, ModelSpec(128, 4, 4, 128, ALPHABET, 128))


# ---- training


def loss_of(model: Transformer, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def all_gradients(model: Transformer, tokens: Tensor) -> dict[str, Tensor]:
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(loss_of(model, tokens), list(parameters.values()), allow_unused=True)
    assert None not in found, [name for name, g in zip(parameters, found, strict=True) if g is None]
    return dict(zip(parameters, found, strict=True))


@every_case
def test_every_parameter_gets_a_gradient(case: Case) -> None:
    for name, gradient in all_gradients(case.model(), text(TRAIN_LENGTH + 1, batch=4)).items():
        assert gradient.isfinite().all(), name
        assert gradient.abs().max() > 0, name


@every_case
def test_a_bfloat16_step_is_close_to_a_float32_step(case: Case) -> None:
    model, tokens = case.model(), text(TRAIN_LENGTH + 1, batch=4)
    exact = all_gradients(model, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = all_gradients(model, tokens)
    for name, gradient in rounded.items():
        assert gradient.isfinite().all(), name
        assert (gradient - exact[name]).norm() < 0.1 * exact[name].norm(), name


# ---- evaluation


@every_case
@torch.no_grad()
def test_four_times_the_training_length_is_finite_or_undefined(case: Case) -> None:
    model = case.model().eval()
    try:
        logits = model(text(4 * TRAIN_LENGTH))
    except PositionRangeError:
        return
    assert logits.isfinite().all()


@every_case
@torch.no_grad()
def test_evaluation_is_deterministic_and_one_character_is_enough(case: Case) -> None:
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    first = model(tokens)
    torch.rand(3)
    assert torch.equal(model(tokens), first)
    alone = model(tokens[:, :1])
    assert alone.isfinite().all()
    close(alone, first[:, :1])


@every_case
def test_one_character_can_be_trained_on(case: Case) -> None:
    loss_of(model := case.model(), text(2)).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@every_case
@torch.no_grad()
def test_the_state_holds_everything(case: Case) -> None:
    model, other, tokens = case.model(1).eval(), case.model(2).eval(), text(TRAIN_LENGTH)
    assert not torch.equal(other(tokens), model(tokens))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(tokens), model(tokens))


@every_case
def test_a_row_of_a_batch_is_the_row_alone(case: Case) -> None:
    model, tokens = case.model(), text(TRAIN_LENGTH, batch=3)
    close(model(tokens[1:2]), model(tokens)[1:2])
    with torch.no_grad():
        close(model(tokens[1:2]), model(tokens)[1:2])


@every_case
@torch.no_grad()
def test_the_last_logits_alone_are_the_last_of_all(case: Case) -> None:
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    logits = model(tokens)
    for scored in (1, 5, TRAIN_LENGTH):
        close(model(tokens, scored=scored), logits[:, -scored:])


# ---- strategies


@every_case
def test_no_strategy_changes_anything_up_to_the_training_length(case: Case) -> None:
    encoding = case.model().encoding
    for name in strategies.names():
        for length in (1, TRAIN_LENGTH - 1, TRAIN_LENGTH):
            assert strategies.apply(name, encoding, TRAIN_LENGTH, length) is encoding


@every_case
@torch.no_grad()
def test_a_strategy_is_causal_and_finite_or_refused(case: Case) -> None:
    model, length = case.model().eval(), 2 * TRAIN_LENGTH
    tokens = text(TRAIN_LENGTH)
    before = model(tokens)
    for name in strategies.names():
        try:
            longer = model.using(strategies.apply(name, model.encoding, TRAIN_LENGTH, length))
            assert longer(text(length)).isfinite().all()
        except (StrategyRefused, PositionRangeError):
            continue
        assert_causal(longer, length)
    assert torch.equal(model(tokens), before)
