import math

import pytest
import torch

from pe_cli import strategies
from pe_cli.attention import attend
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.sliding_window import SlidingWindow
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import ConfigError
from pe_cli.model import new_model

SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=16, alphabet="abcdefgh", max_position=16)


def block(**options: object) -> dict[str, object]:
    return {"name": "sliding_window", **options}


def layer_of(length: int) -> tuple[LayerView, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 4, length, 4, generator=generator) for _ in range(3))
    return LayerView(0, torch.zeros(1, length, 16), q, k, Positions.sequential(length)), v


def mask_of(encoding: PositionEncoding, length: int) -> torch.Tensor:
    layer, _ = layer_of(length)
    everything = slice(0, length)
    mask = encoding.mask(Block(layer, None, layer.q, layer.k, everything, everything, encoding))
    assert mask is not None
    return mask


def test_the_mask_is_a_band_below_the_diagonal() -> None:
    ones = torch.ones(9, 9, dtype=torch.bool)
    mask = mask_of(registry.build(block(window=3), SPEC), 9)
    assert torch.equal(mask.tril(), ones.tril() & ~ones.tril(-3))
    assert mask.tril().sum(dim=1).tolist() == [1, 2, 3, 3, 3, 3, 3, 3, 3]


def test_reach_is_the_window_of_the_first_query_up_to_the_last() -> None:
    encoding = registry.build(block(window=4), SPEC)
    layer, _ = layer_of(16)
    assert encoding.reach(layer, slice(10, 12)) == slice(7, 12)
    assert encoding.reach(layer, slice(0, 2)) == slice(0, 2)


@pytest.mark.parametrize(("train_length", "window"), [(128, 64), (33, 16), (1, 1)])
def test_the_default_window_is_half_the_training_length(train_length: int, window: int) -> None:
    spec = ModelSpec(16, 4, 2, train_length, "ab", train_length)
    encoding = registry.build("sliding_window", spec)
    assert isinstance(encoding, SlidingWindow)
    assert encoding.window == window
    assert encoding.inner.name == "rope"


def test_a_window_of_one_gives_every_character_its_own_value() -> None:
    encoding = registry.build(block(window=1, encoding="alibi"), SPEC)
    for length in (1, 5):
        layer, v = layer_of(length)
        for gradients in (True, False):
            with torch.set_grad_enabled(gradients):
                torch.testing.assert_close(attend(encoding, layer, v), v)


def test_a_window_as_long_as_the_text_is_no_window() -> None:
    layer, v = layer_of(12)
    windowed = registry.build(block(window=12, encoding="rope"), SPEC)
    torch.testing.assert_close(attend(windowed, layer, v), attend(registry.build("rope", SPEC), layer, v))


def test_alibi_in_a_window_against_loops_in_float64() -> None:
    window, length = 5, 14
    layer, v = layer_of(length)
    q, k, values = layer.q.double(), layer.k.double(), v.double()
    expected = torch.zeros_like(values)
    for head in range(4):
        slope = 4.0 ** -(head + 1)
        for i in range(length):
            keys = range(max(0, i - window + 1), i + 1)
            logits = [float(q[0, head, i] @ k[0, head, j]) / 2 - slope * (i - j) for j in keys]
            shares = [math.exp(logit) for logit in logits]
            for j, share in zip(keys, shares, strict=True):
                expected[0, head, i] += share / sum(shares) * values[0, head, j]
    encoding = registry.build(block(window=window, encoding="alibi"), SPEC)
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            torch.testing.assert_close(attend(encoding, layer, v).double(), expected, atol=1e-6, rtol=1e-6)


def test_n_layers_pass_on_n_times_the_window_less_one() -> None:
    window, layers, length = 3, 2, 12
    model = new_model(SPEC, block(window=window, encoding="none"), seed=1)
    tokens = torch.arange(length)[None] % 8
    seen: list[torch.Tensor] = []  # the embeddings
    model.embedding.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    last = model(tokens)[0, -1].sum()
    (gradient,) = torch.autograd.grad(last, seen)
    reached = gradient[0].abs().amax(dim=-1) > 0
    assert reached.nonzero().flatten().tolist() == list(range(length - 1 - layers * (window - 1), length))


@pytest.mark.parametrize(("inner", "sees"), [("none", Sees.NOTHING), ("rope", Sees.DISTANCE)])
def test_ids_matter_as_much_as_inside(inner: str, sees: Sees) -> None:
    assert registry.build(block(encoding=inner), SPEC).sees is sees


def test_a_strategy_reaches_the_encoding_inside() -> None:
    encoding = registry.build(block(encoding="alibi", window=4), SPEC)
    changed = strategies.apply("interpolate", encoding, 16, 31)
    assert isinstance(changed, SlidingWindow)
    assert changed.positions(torch.zeros(1, 31, dtype=torch.long)).ids[0, -1] == 15
    assert mask_of(changed, 31).sum(dim=1)[-1] == 4, "the window counts characters, not ids"


@pytest.mark.parametrize("window", [0, -3, 2.5, "wide"])
def test_a_window_that_is_no_positive_whole_number_is_refused(window: object) -> None:
    with pytest.raises(ConfigError, match=r"^window"):
        registry.canonical_block(block(window=window))


def test_an_option_of_the_encoding_inside_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"bse.*did you mean 'base'"):
        registry.canonical_block(block(encoding={"name": "rope", "bse": 100}))
