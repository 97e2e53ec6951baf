"""DAPE: a network on the logits and the bias of each pair of query and key."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import at, bias, block_of, built, logits, output, random_layer, with_parameters

from pe_cli.attention import attend
from pe_cli.encodings import _composition
from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.encodings.views import LayerView
from pe_cli.errors import ConfigError


def inside(encoding: PositionEncoding, name: str) -> PositionEncoding:
    part = encoding.get_submodule(name)
    assert isinstance(part, PositionEncoding)
    return part


def leaky(z: float) -> float:
    return z if z > 0 else 0.01 * z


@pytest.mark.parametrize("index", [0, 1])
@torch.no_grad()
def test_the_bias_is_that_of_the_encoding_and_a_network_of_it_and_the_logits(index: int) -> None:
    layer = random_layer(6, index=index)
    encoding = built({"name": "dape", "encoding": "t5", "hidden": 3})
    static = bias(inside(encoding, "inner"), layer)[0]
    content = layer.q @ layer.k.transpose(-2, -1) / 8**0.5
    ours = bias(encoding, layer)
    first, constant, second = (encoding.get_parameter(name)[index] for name in ("first", "first_bias", "second"))
    for i in range(6):
        for j in range(i + 1):
            inputs = [*content[1, :, i, j].tolist(), *static[:, i, j].tolist()]
            hidden = [
                leaky(sum(w * z for w, z in zip(row.tolist(), inputs, strict=True)) + c)
                for row, c in zip(first, constant.tolist(), strict=True)
            ]
            for head in range(4):
                correction = sum(w * z for w, z in zip(second[head].tolist(), hidden, strict=True))
                assert ours[1, head, i, j].item() == pytest.approx(inputs[4 + head] + correction, abs=1e-12)


@torch.no_grad()
def test_a_network_of_zero_leaves_the_encoding_as_it_is() -> None:
    layer, v = random_layer(9), random_layer(9, seed=1).k
    for inner in ("alibi", {"name": "mix", "parts": ["rope", "t5"]}):
        encoding = with_parameters(built({"name": "dape", "encoding": inner}), second=torch.zeros(1))
        own = layer.at(encoding.positions(torch.zeros(1, 9, dtype=torch.long)))
        torch.testing.assert_close(attend(encoding, own, v), attend(inside(encoding, "inner"), own, v))


@torch.no_grad()
def test_heads_meet_in_the_network() -> None:
    """A logit of one head moves the bias of the others: a plain sum of the heads, f = Σ a over the heads."""
    encoding = built({"name": "dape", "hidden": 1}, n_layers=1)
    reading = torch.tensor([1.0] * 4 + [0.0] * 4)
    with_parameters(encoding, first=reading, first_bias=torch.full((1,), 1e3), second=torch.ones(1))
    layer = random_layer(5)
    content = layer.q @ layer.k.transpose(-2, -1) / 8**0.5
    block = block_of(encoding, layer)
    ours = encoding.dense_bias(block)
    static = block_of(built("alibi"), layer)
    plain = built("alibi").dense_bias(static)
    assert ours is not None
    assert plain is not None
    expected = (content.sum(dim=1, keepdim=True) + 1e3).expand_as(ours)
    torch.testing.assert_close((ours - plain)[:, :, 4], expected[:, :, 4])


@torch.no_grad()
def test_logits_are_those_after_a_rotation_by_another_part() -> None:
    layer = random_layer(7)
    turning = built({"name": "mix", "parts": ["rope", "dape"]}, n_layers=1)
    own = layer.at(turning.positions(torch.zeros(1, 7, dtype=torch.long)))
    q, k = built("rope").rotate(layer)
    expected = logits(inside(turning, "parts.1"), LayerView(0, layer.x, q, k, layer.positions))
    torch.testing.assert_close(logits(turning, own), expected)


@pytest.mark.parametrize("pairs", [1, 40, 10**6])
@torch.no_grad()
def test_pieces_and_blocks_of_any_size_give_the_same(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, v, encoding = random_layer(9), random_layer(9, seed=1).k, built("dape")
    whole = output(encoding, layer, v)
    monkeypatch.setattr(_composition, "PAIRS", pairs)
    torch.testing.assert_close(output(encoding, layer, v), whole)
    torch.testing.assert_close(output(encoding, layer, v, slice(4, 7)), whole[:, :, 4:7])


def test_no_part_of_the_bias_is_a_function_of_the_distance() -> None:
    encoding, layer = built("dape"), random_layer(5)
    assert built("alibi").hooks(0) == {"by_distance"}
    assert encoding.hooks(0) == {"bias"}
    assert encoding.offset_bias(layer, 5) is None
    assert encoding.by_distance(layer, torch.arange(5.0)) is None
    around_a_window = built({"name": "dape", "encoding": {"name": "sliding_window", "encoding": "t5"}})
    assert around_a_window.hooks(1) == {"bias", "mask", "reach"}


def test_it_sees_of_ids_what_the_encoding_inside_sees() -> None:
    assert built("dape").sees is Sees.DISTANCE
    assert built({"name": "dape", "encoding": "fox"}).sees is Sees.NOTHING
    assert not built({"name": "dape", "encoding": "t5"}).fractional
    layer = random_layer(6)
    far = layer.at(at([0, 10, 20, 30, 40, 50]))
    assert not torch.equal(logits(built("dape"), layer), logits(built("dape"), far))


def test_sizes() -> None:
    shapes = {name: tuple(value.shape) for name, value in built("dape", n_layers=3).state_dict().items()}
    assert shapes == {"first": (3, 32, 8), "first_bias": (3, 32), "second": (3, 4, 32)}


@pytest.mark.parametrize("name", ["dape", "dape_v2"])
@pytest.mark.parametrize(
    ("inner", "said"),
    [("rope", "rope"), ("none", "none"), ({"name": "layered", "pattern": ["t5", "rope"]}, "layered")],
)
def test_without_a_bias_there_is_nothing_to_correct(name: str, inner: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"encoding\.encoding: {said} adds no bias .* alibi or t5 would do"):
        built({"name": name, "encoding": inner})


@pytest.mark.parametrize("options", [{"hidden": 0}, {"hidden": 2.5}, {"encoding": "alibbi"}])
def test_options_that_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        built({"name": "dape", **options})
