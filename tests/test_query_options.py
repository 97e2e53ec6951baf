"""model.qk_norm and model.log_n: what they make of queries and keys before a position encoding sees them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import attend
from pe_cli.config import resolve
from pe_cli.encodings.base import Family, ModelSpec, PositionEncoding, Sees, log_n_factor
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.model import Layer, Transformer, new_model
from pe_cli.trained import fresh_model

SPEC = ModelSpec(d_model=12, n_heads=3, n_layers=2, train_length=8, alphabet="abcdefgh", max_position=8)
LENGTH = 20
TOKENS = torch.randint(8, (2, LENGTH), generator=torch.Generator().manual_seed(0))


class Recorder(PositionEncoding):
    """No encoding; it keeps what each layer shows it."""

    name, family, reference, year, sees = "recorder", Family.NONE, "", 0, Sees.NOTHING

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(None, spec)
        self.shown: list[LayerView] = []

    def prepare(self, layer: LayerView) -> Any:
        self.shown.append(layer)


def shown(spec: ModelSpec, length: int = LENGTH, qk_norm: bool = False) -> tuple[Transformer, list[LayerView]]:
    """A model with seeded weights, gains other than one, and the views of its layers on TOKENS."""
    torch.manual_seed(1)
    recorder = Recorder(spec)
    model = Transformer(spec, recorder, qk_norm=qk_norm)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm_query.weight"):
                parameter.copy_(torch.tensor([0.5, 1.0, 1.5, 2.0]))
            if name.endswith("norm_key.weight"):
                parameter.copy_(torch.tensor([3.0, 1.0, 0.2, 0.7]))
        model(TOKENS[:, :length])
    return model, recorder.shown


def projected(model: Transformer, view: LayerView, name: str) -> Tensor:
    """(B, H, T, K) in float64: column h × 4 + c of the product is column c of head h."""
    weight = model.get_parameter(f"blocks.{view.index}.{name}.weight").detach().double()
    flat = view.x.double() @ weight.T
    return torch.stack([flat[..., 4 * head : 4 * head + 4] for head in range(3)], dim=1)


# ---- query–key normalisation


def test_queries_and_keys_have_the_size_of_their_gains() -> None:
    model, views = shown(SPEC, qk_norm=True)
    for view in views:
        for own, name, stated in ((view.q, "query", [0.5, 1.0, 1.5, 2.0]), (view.k, "key", [3.0, 1.0, 0.2, 0.7])):
            gains = torch.tensor(stated).double()
            raw = projected(model, view, name)
            expected = gains * raw / (raw.square().sum(dim=-1, keepdim=True) / 4).sqrt()
            torch.testing.assert_close(own.double(), expected, atol=1e-5, rtol=1e-5)
            assert (own.double() / gains).norm(dim=-1).sub(2).abs().max() < 1e-5


def test_gains_are_one_for_each_column_and_start_at_one() -> None:
    plain, normed = (dict(new_model(SPEC, "rope", seed=1, qk_norm=on).named_parameters()) for on in (False, True))
    added = {name: parameter for name, parameter in normed.items() if name not in plain}
    assert set(added) == {f"blocks.{layer}.norm_{kind}.weight" for layer in (0, 1) for kind in ("query", "key")}
    for gains in added.values():
        assert gains.tolist() == [1.0] * SPEC.d_head
    assert all(torch.equal(normed[name], parameter) for name, parameter in plain.items())


@pytest.mark.parametrize("qk_norm", [False, True])
def test_only_with_it_the_size_of_the_query_matrix_does_not_matter(qk_norm: bool) -> None:
    model = new_model(SPEC, "rope", seed=1, qk_norm=qk_norm)
    before = model(TOKENS)
    with torch.no_grad():
        model.get_parameter("blocks.0.query.weight").mul_(50)
        model.get_parameter("blocks.1.key.weight").mul_(50)
    assert torch.allclose(model(TOKENS), before, atol=1e-4) == qk_norm


def test_a_rotation_turns_what_is_normalised() -> None:
    """Gains that differ within a pair would not commute with turning it."""
    length, layer = 6, Layer(replace(SPEC, n_heads=1), 0, dropout=0.0, qk_norm=True)
    with torch.no_grad():
        layer.get_parameter("norm_query.weight").copy_(torch.arange(1.0, 13.0))
    rope = new_model(replace(SPEC, n_heads=1), "rope", seed=1).encoding
    views: list[LayerView] = []

    class Spy(PositionEncoding):
        name, family, reference, year, sees = "spy", Family.NONE, "", 0, Sees.DISTANCE

        def rotate(self, view: LayerView) -> tuple[Tensor, Tensor]:
            views.append(view)
            return rope.rotate(view)

    x = torch.randn(1, length, 12, generator=torch.Generator().manual_seed(2))
    positions = Positions.sequential(length)
    with torch.no_grad():
        found = layer(x, positions, Spy(None, SPEC), slice(0, length))
        (view,) = views
        raw = layer.query(layer.norm_attention(x))
        wanted = raw / raw.square().mean(dim=-1, keepdim=True).sqrt() * torch.arange(1.0, 13.0)
        torch.testing.assert_close(view.q[:, 0], wanted, atol=1e-5, rtol=1e-5)
        mixed = attend(rope, view, layer.value(layer.norm_attention(x))[:, None])
        after = x + layer.out(mixed[:, 0])
        feed = layer.norm_feed(after)
        after = after + layer.down(torch.nn.functional.silu(layer.gate(feed)) * layer.up(feed))
    torch.testing.assert_close(found, after, atol=1e-5, rtol=1e-5)


# ---- the log-n factor


def test_the_factor_in_numbers() -> None:
    """L = 8: ln 16 / ln 8 = 4/3 and ln 64 / ln 8 = 2."""
    factor = log_n_factor(torch.arange(64), 8)
    assert factor[:8].tolist() == [1.0] * 8
    assert factor[15].item() == pytest.approx(4 / 3)
    assert factor[63].item() == pytest.approx(2)
    assert factor[8].item() == pytest.approx(math.log(9) / math.log(8))


@pytest.mark.parametrize("train_length", [1, 2, 3, 7, 100, 128, 1000, 4096])
def test_the_factor_is_exactly_one_up_to_the_training_length(train_length: int) -> None:
    factor = log_n_factor(torch.arange(train_length + 3), train_length)
    assert (factor[:train_length] == 1).all()
    assert factor.isfinite().all()
    assert (factor[train_length + 1 :] > 1).all()


@pytest.mark.parametrize("qk_norm", [False, True])
def test_each_query_is_multiplied_and_no_key(qk_norm: bool) -> None:
    plain, factored = (shown(replace(SPEC, log_n=on), qk_norm=qk_norm)[1][0] for on in (False, True))
    expected = [max(1.0, math.log(i + 1) / math.log(8)) for i in range(LENGTH)]
    factor = torch.tensor(expected)[:, None]
    torch.testing.assert_close(factored.q, plain.q * factor)
    assert torch.equal(factored.k, plain.k)
    assert torch.equal(factored.x, plain.x)


def test_nothing_changes_up_to_the_training_length() -> None:
    plain, factored = (new_model(replace(SPEC, log_n=on), "rope", seed=1) for on in (False, True))
    assert torch.equal(plain(TOKENS[:, :8]), factored(TOKENS[:, :8]))
    longer = (plain(TOKENS) - factored(TOKENS)).abs().amax(dim=(0, 2))
    assert longer[:8].max() < 1e-6
    assert longer[9:].min() > 1e-6


def test_it_counts_characters_and_not_ids() -> None:
    model = new_model(replace(SPEC, log_n=True), "rope", seed=1)
    squeezed = model.using(strategies.apply("interpolate", model.encoding, 8, LENGTH))
    plain = new_model(SPEC, "rope", seed=1)
    wanted = plain.using(strategies.apply("interpolate", plain.encoding, 8, LENGTH))
    difference = (squeezed(TOKENS) - wanted(TOKENS)).abs().amax(dim=(0, 2))
    assert difference[:8].max() < 1e-6
    assert difference[9:].min() > 1e-6


def test_rerope_brings_the_factor_only_where_the_model_has_none() -> None:
    """So that the two ways to have it give one model."""
    found = []
    for log_n in (False, True):
        model = new_model(replace(SPEC, log_n=log_n), "rope", seed=1)
        found.append(model.using(strategies.apply("rerope", model.encoding, 8, LENGTH))(TOKENS))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("encoding", ["rope", "sliding_window", "layered"])
def test_an_encoding_is_told_what_the_config_says(encoding: str) -> None:
    for log_n in (False, True):
        changes = {"encoding": encoding, "model.log_n": str(log_n)}
        model = fresh_model(resolve(None, changes).experiment, "ab")
        seen = [module.spec.log_n for module in model.modules() if isinstance(module, PositionEncoding)]
        assert set(seen) == {log_n}
        assert {block.log_n_length for block in model.blocks if isinstance(block, Layer)} == {128 if log_n else None}
