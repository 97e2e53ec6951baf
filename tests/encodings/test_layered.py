import pytest
import torch

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.layered import Layered
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import ConfigError, StrategyRefused
from pe_cli.model import new_model

TOKENS = torch.randint(8, (2, 16), generator=torch.Generator().manual_seed(0))


def spec(n_layers: int) -> ModelSpec:
    return ModelSpec(16, 4, n_layers, train_length=16, alphabet="abcdefgh", max_position=16)


def built(*pattern: object, n_layers: int = 4) -> Layered:
    encoding = registry.build({"name": "layered", "pattern": list(pattern)}, spec(n_layers))
    assert isinstance(encoding, Layered)
    return encoding


def block_of(encoding: Layered, index: int, length: int = 16) -> Block:
    q = torch.zeros(1, 4, length, 4)
    layer = LayerView(index, torch.zeros(1, length, 16), q, q, encoding.positions(TOKENS[:1, :length]))
    everything = slice(0, length)
    return Block(layer, encoding.prepare(layer), q, q, everything, everything, encoding)


def test_the_default_is_three_windows_of_rope_and_one_layer_without_either() -> None:
    encoding = registry.build("layered", spec(8))
    hooks = [encoding.hooks(index) for index in range(8)]
    assert hooks == [frozenset({"rotate", "mask", "reach"})] * 3 + [frozenset()] + hooks[:4]


def test_each_layer_has_its_own_bias() -> None:
    encoding = built("none", "alibi", {"name": "alibi", "max_exponent": 4}, n_layers=3)
    assert encoding.dense_bias(block_of(encoding, 0)) is None
    for index, slope in ((1, 1 / 4), (2, 1 / 2)):
        bias = encoding.dense_bias(block_of(encoding, index))
        assert bias is not None
        assert bias[0, 0, 10, :11].tolist() == [-slope * (10 - j) for j in range(11)]


def test_equal_entries_are_one_encoding() -> None:
    shared = built("t5", "none", "t5", n_layers=3)
    assert sum(p.numel() for p in shared.parameters()) == 32 * 4
    apart = built("t5", "none", {"name": "t5", "buckets": 16}, n_layers=3)
    assert sum(p.numel() for p in apart.parameters()) == 32 * 4 + 16 * 4


def test_a_part_counts_only_the_layers_that_it_serves() -> None:
    encoding = built("fox", "none", n_layers=5)
    assert dict(encoding.named_parameters())["parts.0.gate_bias"].shape == (3, 4)
    with torch.no_grad():
        dict(encoding.named_parameters())["parts.0.gate_bias"][1] = -3.0
    fading = [encoding.dense_bias(block_of(encoding, index)) for index in (0, 2, 4)]
    near = [bias[0, 0, 9, 8].item() for bias in fading if bias is not None]
    assert near[0] == near[2] > -0.01
    assert near[1] < -3, "its second layer is layer 2 of the model"


def test_a_pattern_of_one_is_that_encoding() -> None:
    for name in ("rope", "t5", "stick_breaking", "shaw"):
        layered = new_model(spec(2), {"name": "layered", "pattern": [name]}, seed=1)
        torch.testing.assert_close(layered(TOKENS), new_model(spec(2), name, seed=1)(TOKENS))


def test_an_entry_for_no_layer_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"encoding\.pattern: has 3 entries, and .* are 2; leave out"):
        built("rope", "none", "rope", n_layers=2)
    inner = {"name": "layered", "pattern": ["rope", "none"]}
    with pytest.raises(ConfigError, match=r"encoding\.pattern\.1\.pattern: has 2 entries, and .* are 1; leave out"):
        built("none", inner, n_layers=2)
    assert len(registry.build("layered", spec(2)).hooks(1)) == 3, "nobody stated the default"


def test_the_order_of_layers_matters() -> None:
    first, second = (
        new_model(spec(2), {"name": "layered", "pattern": pattern}, seed=1)
        for pattern in (["rope", "none"], ["none", "rope"])
    )
    assert (first(TOKENS) - second(TOKENS)).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["learned", "sinusoidal", "bipe"])
def test_what_acts_before_the_first_layer_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} acts before the first layer.*name: mix, parts: \[{name}"):
        built("rope", name)


def test_numbers_of_equal_entries_stand_once_and_of_different_ones_apart() -> None:
    steep = {"name": "alibi", "max_exponent": 4}
    numbers = built("alibi", steep, "none", "alibi").numbers(4)
    assert {key: value[0].item() for key, value in numbers.items()} == {
        "alibi#1.slopes": 1 / 4,
        "alibi#2.slopes": 1 / 2,
    }
    assert set(built("alibi", "none").numbers(4)) == {"alibi.slopes"}


def test_a_layer_has_its_own_mask() -> None:
    pattern = [{"name": "fixed", "stride": 4, "summary": 1}, "fox", {"name": "sinks", "sinks": 1, "window": 2}]
    encoding = built(*pattern, n_layers=3)
    seen = []
    for index in range(3):
        mask = encoding.mask(block_of(encoding, index))
        seen.append(None if mask is None else mask.tril()[9].nonzero().flatten().tolist())
    assert seen == [[3, 7, 8, 9], None, [0, 8, 9]]
    view = block_of(encoding, 2).layer
    assert torch.arange(16)[encoding.reach(view, slice(9, 10))].tolist() == [0, 8, 9]


def test_strategies_change_the_layers_for_which_they_have_a_meaning() -> None:
    encoding = built("rope", "none")
    changed = strategies.apply("rerope", encoding, 16, 32)
    assert "scores" in changed.hooks(0)
    assert changed.hooks(1) == frozenset()
    with pytest.raises(StrategyRefused, match=r"repeat_last has no meaning for rope.*for none"):
        strategies.apply("repeat_last", encoding, 16, 32)
