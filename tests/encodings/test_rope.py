"""RoPE: frequencies of the paper, products that see distances only, two layouts, refused sizes."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, built, logits, random_layer
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError

LAYOUTS = ("halves", "interleaved")


def rope(layout: str = "halves", dtype: torch.dtype = torch.float64, **options: float) -> PositionEncoding:
    return built({"name": "rope", "layout": layout, **options}, dtype=dtype)


def test_frequencies_of_a_head_of_eight() -> None:
    numbers = rope().numbers(1)
    assert numbers["inverse_frequencies"].tolist() == pytest.approx([1, 0.1, 0.01, 0.001], rel=1e-14)
    assert numbers["wavelengths"].tolist() == pytest.approx([2 * math.pi * power for power in (1, 10, 100, 1000)])


@pytest.mark.parametrize(
    ("base", "d_head", "length", "slow"),
    [(1e4, 32, 128, 10), (1e4, 32, 256, 9), (1e4, 64, 256, 19), (5e5, 64, 128, 24)],
)
def test_pairs_that_complete_no_turn(base: float, d_head: int, length: int, slow: int) -> None:
    encoding = built({"name": "rope", "base": base}, d_model=d_head, n_heads=1)
    assert (encoding.numbers(1)["wavelengths"] > length).sum() == slow


def test_interleaved_is_multiplication_of_complex_numbers() -> None:
    layer = random_layer(6).at(at([0, 1, 2.5, 40, 999, 4000]))
    turned, _ = rope("interleaved").rotate(layer)
    for number, p in enumerate(layer.positions.ids[0].tolist()):
        for pair in range(4):
            a, b = layer.q[1, 3, number, 2 * pair : 2 * pair + 2].tolist()
            angle = p * 10000 ** (-2 * pair / 8)
            product = complex(a, b) * complex(math.cos(angle), math.sin(angle))
            assert turned[1, 3, number, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(
                [product.real, product.imag], abs=1e-12
            )


def test_layouts_are_one_function_up_to_a_permutation() -> None:
    layer = random_layer(10)
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    permuted = type(layer)(0, layer.x, layer.q[..., order], layer.k[..., order], layer.positions)
    for one, other in zip(rope("interleaved").rotate(layer), rope("halves").rotate(permuted), strict=True):
        torch.testing.assert_close(one[..., order], other, atol=1e-14, rtol=0)
    torch.testing.assert_close(logits(rope("interleaved"), layer), logits(rope("halves"), permuted))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shift", [1, 7, 1000])
def test_logits_survive_a_shift_and_norms_survive_the_turn(layout: str, shift: int) -> None:
    layer = random_layer(12)
    moved = layer.at(at(layer.positions.ids[0] + shift))
    torch.testing.assert_close(logits(rope(layout), moved), logits(rope(layout), layer), atol=1e-10, rtol=0)
    for before, after in zip((layer.q, layer.k), rope(layout).rotate(moved), strict=True):
        torch.testing.assert_close(after.norm(dim=-1), before.norm(dim=-1))
        assert (after - before).abs().max() > 0.1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_id_zero_is_the_identity(layout: str) -> None:
    layer = random_layer(1)
    q, k = rope(layout).rotate(layer)
    assert torch.equal(q, layer.q)
    assert torch.equal(k, layer.k)


def product_at(dtype: torch.dtype, p: float) -> Tensor:
    """q at p times k at p − 3 in every head; rotated in `dtype`, multiplied in float64."""
    layer = random_layer(1, batch=50)
    q, k = layer.q.to(dtype), layer.k.to(dtype)
    view = type(layer)(0, layer.x, q, k, layer.positions)
    encoding = rope(dtype=dtype)
    turned_q, _ = encoding.rotate(view.at(at([p])))
    _, turned_k = encoding.rotate(view.at(at([p - 3])))
    assert turned_q.dtype == dtype
    return (turned_q.double() * turned_k.double()).sum(dim=-1)


def test_float32_agrees_at_10_and_4000() -> None:
    torch.testing.assert_close(product_at(torch.float32, 4000), product_at(torch.float32, 10), atol=5e-6, rtol=0)


def test_the_error_of_bfloat16_does_not_grow_with_the_id() -> None:
    exact = product_at(torch.float64, 10)
    near, far = ((product_at(torch.bfloat16, p) - exact).square().mean().sqrt() for p in (10, 4000))
    assert far < 1.5 * near


def test_a_head_of_two_columns_works() -> None:
    layer = random_layer(4, d_model=8)
    assert logits(built("rope", d_model=8), layer)[..., 3, :].isfinite().all()


@pytest.mark.parametrize(
    ("d_model", "n_heads", "advice"),
    [
        (30, 2, "28 or 32 would do, or model.n_heads: 1, 3, 5, 15"),
        (35, 5, "30 or 40 would do"),
    ],
)
def test_sizes_without_pairs_are_refused(d_model: int, n_heads: int, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        built("rope", d_model=d_model, n_heads=n_heads)


def test_the_advice_is_good() -> None:
    for d_model, n_heads in ((28, 2), (32, 2), (30, 1), (30, 3), (30, 5), (30, 15)):
        built("rope", d_model=d_model, n_heads=n_heads)


def test_nothing_is_saved() -> None:
    assert not rope().state_dict()
