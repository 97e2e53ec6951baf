import pytest
import torch

from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.strided import Strided
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import ConfigError


def spec(train_length: int = 16, n_heads: int = 4) -> ModelSpec:
    return ModelSpec(4 * n_heads, n_heads, 2, train_length, "abcd", train_length)


def built(train_length: int = 16, n_heads: int = 4, **options: object) -> Strided:
    encoding = registry.build({"name": "strided", **options}, spec(train_length, n_heads))
    assert isinstance(encoding, Strided)
    return encoding


def layer_of(length: int, n_heads: int = 4) -> LayerView:
    q = torch.zeros(1, n_heads, length, 4)
    return LayerView(0, torch.zeros(1, length, 4 * n_heads), q, q, Positions.sequential(length))


def mask_of(encoding: PositionEncoding, length: int) -> torch.Tensor:
    """Causal, (T, T) or (H, T, T)."""
    layer = layer_of(length, encoding.spec.n_heads)
    everything = slice(0, length)
    mask = encoding.mask(Block(layer, None, layer.q, layer.k, everything, everything, encoding))
    assert mask is not None
    return mask.tril()


@pytest.mark.parametrize(("train_length", "stride"), [(128, 11), (1024, 32), (16384, 128), (1, 1)])
def test_the_default_stride_is_the_root_of_the_training_length(train_length: int, stride: int) -> None:
    assert built(train_length).stride == stride


@pytest.mark.parametrize("stride", [1, 2, 5, 8])
def test_every_earlier_character_is_within_two_steps(stride: int) -> None:
    length = 30
    near = mask_of(built(stride=stride, pattern="local"), length).float()
    every = mask_of(built(stride=stride, pattern="strided"), length).float()
    full = torch.ones(length, length, dtype=torch.bool).tril()
    assert torch.equal(near @ every > 0, full)
    assert torch.equal(every @ near > 0, full)


def test_a_query_has_about_two_root_n_keys() -> None:
    """Of n = 1024 earlier characters: 32 near ones and 31 more, not 1024."""
    assert mask_of(built(1024), 1024).sum(dim=1).max() == 63


def test_the_sets_against_python_sets() -> None:
    stride, length = 4, 19
    for pattern in ("local", "strided", "union"):
        mask = mask_of(built(stride=stride, pattern=pattern), length)
        for i in range(length):
            near = set(range(max(0, i - stride + 1), i + 1))
            every = set(range(i, -1, -stride))
            wanted = {"local": near, "strided": every, "union": near | every}[pattern]
            assert set(mask[i].nonzero().flatten().tolist()) == wanted


@pytest.mark.parametrize(("n_heads", "near_heads"), [(4, 2), (3, 2), (2, 1)])
def test_heads_are_halved(n_heads: int, near_heads: int) -> None:
    mask = mask_of(built(n_heads=n_heads, pattern="heads", stride=5), 21)
    near = mask_of(built(n_heads=n_heads, pattern="local", stride=5), 21)
    every = mask_of(built(n_heads=n_heads, pattern="strided", stride=5), 21)
    assert torch.equal(mask, torch.stack([near] * near_heads + [every] * (n_heads - near_heads)))


def test_one_head_cannot_be_halved() -> None:
    with pytest.raises(ConfigError, match="n_heads is 1; write pattern: union"):
        built(n_heads=1, pattern="heads")


def test_reach_has_no_key_too_many() -> None:
    length = 40
    layer = layer_of(length)
    for pattern in ("local", "strided", "union"):
        encoding = built(stride=7, pattern=pattern)
        mask = mask_of(encoding, length)
        for queries in (slice(20, 21), slice(33, 36), slice(0, 3)):
            keys = torch.arange(length)[encoding.reach(layer, queries)]
            assert torch.equal(keys, mask[queries].any(dim=0).nonzero().flatten())
    assert built(stride=7).reach(layer, slice(20, 27)) == slice(0, 27)


def test_alternate_layers_take_one_set_each() -> None:
    pattern = [{"name": "strided", "pattern": kind, "stride": 4} for kind in ("local", "strided")]
    encoding = registry.build({"name": "layered", "pattern": pattern}, spec())
    layer = layer_of(12)
    view = LayerView(1, layer.x, layer.q, layer.k, encoding.positions(torch.zeros(1, 12, dtype=torch.long)))
    everything = slice(0, 12)
    mask = encoding.mask(Block(view, None, view.q, view.k, everything, everything, encoding))
    assert mask is not None
    assert mask.tril()[11].nonzero().flatten().tolist() == [3, 7, 11]


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="pattern: must be one of union, heads, local, strided"):
        built(pattern="stride")
