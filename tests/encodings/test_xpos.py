"""xPos: RoPE times a factor that falls with distance, split over queries and keys around the middle of the ids."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from driving import at, built, logits, output, random_layer
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import attend
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError, PositionRangeError


def xpos(dtype: torch.dtype = torch.float64, **options: object) -> PositionEncoding:
    return built({"name": "xpos", **options}, dtype)


def by_the_formula(q: Tensor, k: Tensor, distance: float, scale_base: float, interleaved: bool) -> float:
    """The logit of one query and key of 8 columns: Re Σ q conj(k) (ζ^{1/s} e^{iθ})^n / √d."""
    total = 0.0
    for pair in range(4):
        columns = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + 4)
        zeta = (2 * pair + 0.4 * 8) / (1.4 * 8)
        turn = complex(math.cos(distance * 10**-pair), math.sin(distance * 10**-pair))
        product = complex(*q[list(columns)].tolist()) * complex(*k[list(columns)].tolist()).conjugate()
        total += (product * turn * zeta ** (distance / scale_base)).real
    return total / math.sqrt(8)


@pytest.mark.parametrize(("layout", "scale_base"), [("interleaved", 512), ("halves", 512), ("interleaved", 16)])
def test_logits_are_those_of_the_distance(layout: str, scale_base: float) -> None:
    layer = random_layer(7).at(at([0, 1, 2.5, 40, 41, 300, 500]))
    p = layer.positions.ids[0].tolist()
    ours = logits(xpos(layout=layout, scale_base=scale_base), layer)
    for i in range(7):
        for j in range(i + 1):
            q, k = layer.q[1, 2, i], layer.k[1, 2, j]
            expected = by_the_formula(q, k, p[i] - p[j], scale_base, layout == "interleaved")
            assert ours[1, 2, i, j].item() == pytest.approx(expected, abs=1e-11)


def test_zeta_runs_from_two_sevenths_towards_one() -> None:
    zeta = xpos().numbers(1)["zeta"].tolist()
    assert zeta == pytest.approx([3.2 / 11.2, 5.2 / 11.2, 7.2 / 11.2, 9.2 / 11.2])
    assert zeta[0] == pytest.approx(2 / 7)
    assert xpos(gamma=1).numbers(1)["zeta"].tolist() == pytest.approx([1 / 2, 5 / 8, 6 / 8, 7 / 8])


def test_a_product_fades_with_distance_to_the_power_of_zeta() -> None:
    """Only the first pair is in use, and distances are whole turns of it."""
    layer = random_layer(2).at(at([0, 2 * math.pi * 81]))
    only = torch.zeros_like(layer.q)
    only[..., 0] = 1
    ours = logits(xpos(), replace(layer, q=only, k=only))
    distance = layer.positions.ids[0, 1].item()  # rounded to float32
    assert ours[0, 0, 1, 0].item() * math.sqrt(8) == pytest.approx((2 / 7) ** (distance / 512), rel=1e-6)
    assert ours[0, 0, 1, 1].item() * math.sqrt(8) == pytest.approx(1)


@pytest.mark.parametrize("shift", [7, -2.5, 4096, 30_000.25, 1e6, -1e6, 1.6e7])
def test_logits_survive_a_shift_of_any_size(shift: float) -> None:
    """Ids are float32, so the shifted distances are read off the shifted ids."""
    layer = random_layer(6).at(at([0, 3, 4, 90, 91, 1000]))
    moved = layer.at(at(layer.positions.ids[0] + shift))
    back = layer.at(at(moved.positions.ids[0] - moved.positions.ids[0, 0]))
    torch.testing.assert_close(logits(xpos(), moved), logits(xpos(), back), atol=1e-8, rtol=0)


@pytest.mark.parametrize(("scale_base", "length"), [(512.0, 4096), (512.0, 16384), (70.0, 4096)])
def test_long_windows_are_finite_and_still_see_distances_only(scale_base: float, length: int) -> None:
    """A factor ζ^{i/s} counted from 0 would be e^40 after 16384 ids with 512, and e^73 after 4096 with 70."""
    encoding = xpos(torch.float32, scale_base=scale_base)
    layer = random_layer(1, batch=1)
    q, k = (x.float().expand(-1, -1, length, -1) for x in (layer.q, layer.k))
    same = replace(random_layer(1, batch=1).at(at(torch.arange(length))), q=q, k=k)
    turned_q, turned_k = encoding.rotate(same)
    places = torch.tensor([100, length // 2, length - 1])
    for distance in (0, 1, 99):
        found = (turned_q[:, :, places].double() * turned_k[:, :, places - distance].double()).sum(-1) / math.sqrt(8)
        for head in range(4):
            expected = by_the_formula(layer.q[0, head, 0], layer.k[0, head, 0], distance, scale_base, True)
            assert found[0, head].tolist() == pytest.approx([expected] * 3, abs=2e-5)


def test_future_keys_leave_no_trace_in_a_long_window() -> None:
    """Their products are as large as e^73 before the mask hides them."""
    encoding = xpos(torch.float32, scale_base=70.0)
    layer = random_layer(4096, batch=1)
    layer = replace(layer, x=layer.x.float(), q=layer.q.float(), k=layer.k.float())
    v = random_layer(4096, batch=1, seed=1).q.float()
    with torch.no_grad():
        result = attend(encoding, layer, v)
        assert result.isfinite().all()
        last = output(encoding, layer, v, slice(4064, 4096))
    torch.testing.assert_close(result[:, :, 4064:], last, atol=2e-5, rtol=2e-5)


def test_the_middle_is_that_of_the_ids_of_each_row() -> None:
    """Rows of a batch may have ids far from each other; queries at the middle have the factor 1."""
    layer = random_layer(3)
    layer = layer.at(type(layer.positions)(torch.tensor([[0.0, 2.0, 3.0], [10_000_000.0, 10_000_002.0, 10_000_003.0]])))
    q, k = xpos(scale_base=1).rotate(layer)  # (0 + 3 + 1) / 2 = 2
    for turned, before in ((q, layer.q), (k, layer.k)):
        sizes = turned.norm(dim=-1) / before.norm(dim=-1)
        torch.testing.assert_close(sizes[:, :, 1], torch.ones_like(sizes[:, :, 1]))
    grown = (q.norm(dim=-1) / layer.q.norm(dim=-1))[:, :, 0]
    assert (grown > 1.2).all()  # ζ^{−2} of at least 9.2 / 11.2


def test_interpolated_ids_fade_as_slowly_as_they_turn() -> None:
    layer = random_layer(2)
    changed = strategies.apply("interpolate", xpos(scale_base=4), 16, 31)
    squeezed = changed.positions(torch.zeros(1, 31, dtype=torch.long))
    assert squeezed.ids[0, [0, 1, 30]].tolist() == [0, 0.5, 15]
    ours = logits(changed, layer.at(at([0, 0.5])))[1, 2, 1, 0].item()
    assert ours == pytest.approx(by_the_formula(layer.q[1, 2, 1], layer.k[1, 2, 0], 0.5, 4, True), abs=1e-12)


def test_ids_too_far_apart_for_any_number_are_refused() -> None:
    encoding = xpos()
    layer = random_layer(2)
    assert logits(encoding, layer.at(at([0, 30_600])))[..., 1, :].isfinite().all()
    with pytest.raises(PositionRangeError, match=r"scale_base 512 has no numbers for ids 30700 apart"):
        encoding.rotate(layer.at(at([5, 30_705])))


def test_a_scale_too_small_for_training_is_refused_with_one_that_would_do() -> None:
    with pytest.raises(ConfigError, match=r"scale_base: 16 with gamma 0.4 is too small for ids up to 1499, .* 26 or"):
        built({"name": "xpos", "scale_base": 16}, max_position=1500)
    built({"name": "xpos", "scale_base": 26}, max_position=1500)
    with pytest.raises(ConfigError, match=r"scale_base"):
        xpos(scale_base=0)
    with pytest.raises(ConfigError, match=r"gamma"):
        xpos(gamma=0)


def test_odd_heads_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"encoding: model.d_model 15 .* 10 or 20 would do"):
        built("xpos", d_model=15, n_heads=5)
