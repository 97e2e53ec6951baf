"""DAPE's second version: what each query reads of the keys beside a key, and of none after itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from driving import bias, block_of, built, logits, output, random_layer, with_parameters
from torch import Tensor

from pe_cli.attention import attend
from pe_cli.encodings import _composition
from pe_cli.encodings.views import LayerView
from pe_cli.errors import ConfigError


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("index", [0, 1])
@torch.no_grad()
def test_the_correction_is_two_sums_over_neighbours(kernel: int, index: int) -> None:
    layer = random_layer(6, index=index)
    encoding = built({"name": "dape_v2", "kernel": kernel, "hidden": 3})
    first, constant, second = (encoding.get_parameter(name)[index] for name in ("first", "first_bias", "second"))
    static = bias(built("alibi"), layer)[0]
    content = (layer.q @ layer.k.transpose(-2, -1) / 8**0.5)[1]
    ours, side = bias(encoding, layer)[1], kernel // 2
    for i in range(6):
        known = {j: torch.cat((content[:, i, j], static[:, i, j])) for j in range(i + 1)}
        nothing = torch.zeros(8, dtype=torch.float64)

        def hidden(j: int, known: dict[int, Tensor] = known, nothing: Tensor = nothing) -> Tensor:
            if j < 0:
                return nothing[:3]
            z = constant + sum(first[:, :, side + n] @ known.get(j + n, nothing) for n in range(-side, side + 1))
            return torch.where(z > 0, z, 0.01 * z)

        for j in range(i + 1):
            correction = sum(second[:, :, side + n] @ hidden(j + n) for n in range(-side, side + 1))
            torch.testing.assert_close(ours[:, i, j], static[:, i, j] + correction)


@torch.no_grad()
def test_with_a_kernel_of_one_it_is_the_first_version() -> None:
    layer = random_layer(7)
    second = built({"name": "dape_v2", "kernel": 1, "encoding": "t5"})
    first = built({"name": "dape", "encoding": "t5"})
    shared: dict[str, Tensor] = {name: second.get_parameter(name) for name in ("inner.table", "first_bias")}
    shared |= {name: second.get_parameter(name)[..., 0] for name in ("first", "second")}
    with_parameters(first, **shared)
    torch.testing.assert_close(logits(second, layer), logits(first, layer))


@torch.no_grad()
def test_later_characters_change_nothing_not_even_by_being_there() -> None:
    encoding, long = built({"name": "dape_v2", "kernel": 5}), random_layer(12)
    short = LayerView(
        0, long.x[:, :7], long.q[:, :, :7], long.k[:, :, :7], replace(long.positions, ids=torch.arange(7.0)[None])
    )
    torch.testing.assert_close(logits(encoding, long)[:, :, :7, :7], logits(encoding, short))


@pytest.mark.parametrize("pairs", [1, 40, 10**6])
@torch.no_grad()
def test_pieces_and_blocks_of_any_size_give_the_same(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, v, encoding = random_layer(9), random_layer(9, seed=1).k, built("dape_v2")
    whole = output(encoding, layer, v)
    monkeypatch.setattr(_composition, "PAIRS", pairs)
    for rows in (slice(0, 9), slice(0, 1), slice(4, 7)):
        torch.testing.assert_close(output(encoding, layer, v, rows), whole[:, :, rows])


@torch.no_grad()
def test_neighbours_count_where_a_mask_hides_them() -> None:
    layer, encoding = random_layer(9), built("dape_v2")
    block = block_of(encoding, layer)
    keys = torch.tensor([0, 3, 8])
    some, whole = encoding.dense_bias(replace(block, keys=keys, k=block.k[:, :, keys])), encoding.dense_bias(block)
    assert some is not None
    assert whole is not None
    torch.testing.assert_close(some, whole[..., keys])


@torch.no_grad()
def test_logits_are_turned_as_by_the_encoding_inside() -> None:
    """The same as on queries and keys that were turned before."""
    layer, v = random_layer(7), random_layer(7, seed=1).k
    turning = built({"name": "dape_v2", "encoding": {"name": "mix", "parts": ["rope", "alibi"]}})
    q, k = built("rope").rotate(layer)
    plain = with_parameters(built("dape_v2"), **dict(turning.named_parameters()))
    own = layer.at(turning.positions(torch.zeros(1, 7, dtype=torch.long)))
    torch.testing.assert_close(attend(turning, own, v), attend(plain, replace(layer, q=q, k=k), v))


def test_no_part_of_the_bias_is_a_function_of_the_distance() -> None:
    encoding, layer = built("dape_v2"), random_layer(5)
    assert encoding.hooks(0) == {"bias"}
    assert encoding.offset_bias(layer, 5) is None
    assert encoding.by_distance(layer, torch.arange(5.0)) is None


def test_sizes() -> None:
    shapes = {name: tuple(value.shape) for name, value in built("dape_v2", n_layers=3).state_dict().items()}
    assert shapes == {"first": (3, 32, 8, 3), "first_bias": (3, 32), "second": (3, 4, 32, 3)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": 4}, r"kernel: must be odd, not 4; 3 or 5 would do"),
        ({"kernel": 0}, "kernel"),
        ({"hidden": 0}, "hidden"),
    ],
)
def test_options_that_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "dape_v2", **options})
