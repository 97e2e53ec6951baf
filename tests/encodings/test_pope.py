"""PoPE: sizes from the text, angles from ids; a frequency for each column and a learned phase on keys."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, built, layer_of, logits, output, random_layer, with_parameters
from torch import Tensor

from pe_cli.attention import attend
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView


def pope(**options: object) -> PositionEncoding:
    return built({"name": "pope", **options})


def phases(seed: int = 0, layers: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return -2 * math.pi * torch.rand(layers, 4, 8, dtype=torch.float64, generator=generator)


def by_the_equation(layer: LayerView, delta: Tensor, head: int, i: int, j: int) -> float:
    """Σ μ(q) μ(k) cos(n θ_k − δ_k) / √d of a head of 8."""
    p = layer.positions.ids[0].tolist()
    total = 0.0
    for column in range(8):
        sizes = [math.log1p(math.exp(x[1, head, n, column].item())) for x, n in ((layer.q, i), (layer.k, j))]
        angle = (p[i] - p[j]) * 10000 ** (-column / 8) - delta[column].item()
        total += sizes[0] * sizes[1] * math.cos(angle)
    return total / math.sqrt(8)


@pytest.mark.parametrize("index", [0, 1])
def test_logits_by_the_equation(index: int) -> None:
    layer = random_layer(6, index=index).at(at([0, 1, 2.5, 40, 41, 3000]))
    delta = phases()
    ours = logits(with_parameters(pope(), phases=delta), layer)
    for i in range(6):
        for j in range(i + 1):
            assert ours[1, 3, i, j].item() == pytest.approx(by_the_equation(layer, delta[index, 3], 3, i, j), abs=1e-11)


def test_a_frequency_for_each_column() -> None:
    """Those of rope with a head of twice the width."""
    ours = pope().numbers(1)["inverse_frequencies"]
    assert ours.tolist() == pytest.approx([10000 ** (-column / 8) for column in range(8)])
    assert torch.equal(ours, built("rope", d_model=64).numbers(1)["inverse_frequencies"])


def test_where_and_what_are_apart() -> None:
    """Other content changes sizes, never angles; other ids change angles, never sizes."""
    one, other = random_layer(3), random_layer(3, seed=1)
    encoding = with_parameters(pope(), phases=phases())

    def polar(layer: LayerView) -> list[tuple[Tensor, Tensor]]:
        numbers = [torch.complex(*turned.split(8, dim=-1)) for turned in encoding.rotate(layer)]
        return [(number.abs(), number / number.abs()) for number in numbers]

    for (size, direction), (other_size, same) in zip(polar(one), polar(other), strict=True):
        torch.testing.assert_close(direction, same)
        assert (size - other_size).abs().max() > 0.1
    for (size, direction), (same, turned) in zip(polar(one), polar(one.at(at([9, 5, 8]))), strict=True):
        torch.testing.assert_close(size, same)
        assert (direction - turned).abs().max() > 0.1


def test_a_phase_moves_the_preferred_distance() -> None:
    """With one column in use, a head prefers the distance n at which n θ = δ, modulo 2π: here 4 of 2π."""
    content = torch.full((1, 7, 1), 2.0, dtype=torch.float64)
    encoding = with_parameters(built("pope", d_model=1, n_heads=1), phases=torch.tensor(4 - 2 * math.pi))
    last = logits(encoding, layer_of(content, content))[0, 0, -1]
    size = math.log1p(math.exp(2)) ** 2
    assert last.tolist() == pytest.approx([size * math.cos(6 - j - 4) for j in range(7)])
    assert last.argmax() == 6 - 4


def test_phases_beyond_their_limits_are_cut_off() -> None:
    layer = random_layer(4)
    outside, inside = phases() * 3 + 2, (phases() * 3 + 2).clamp(-2 * math.pi, 0)
    assert (outside > 0).any()
    assert (outside < -2 * math.pi).any()
    assert torch.equal(
        logits(with_parameters(pope(), phases=outside), layer), logits(with_parameters(pope(), phases=inside), layer)
    )
    full_turn = logits(with_parameters(pope(), phases=torch.tensor(-2 * math.pi, dtype=torch.float64)), layer)
    torch.testing.assert_close(full_turn, logits(pope(), layer))


@pytest.mark.parametrize(("outside", "leads_back"), [(0.5, 1), (-7.0, -1)])
def test_a_phase_beyond_its_limits_can_come_back(outside: float, leads_back: int) -> None:
    """A gradient that is positive makes a phase smaller: from above that leads back, from below further out."""

    def gradient(phase: float, sign: int) -> Tensor:
        encoding = with_parameters(pope(), phases=torch.tensor(phase, dtype=torch.float64))
        (sign * logits(encoding, random_layer(5))[:, :, 4]).sum().backward()
        found = encoding.get_parameter("phases").grad
        assert found is not None
        return found[0]

    at_limit = gradient(0.0 if outside > 0 else -2 * math.pi + 1e-9, 1)
    for sign in (1, -1):
        back = (sign * at_limit).sign() == leads_back
        torch.testing.assert_close(gradient(outside, sign), torch.where(back, sign * at_limit, 0), atol=1e-6, rtol=0)


def test_logits_survive_a_shift() -> None:
    layer = random_layer(8)
    encoding = with_parameters(pope(), phases=phases())
    moved = layer.at(at(layer.positions.ids[0] + 4321))
    torch.testing.assert_close(logits(encoding, moved), logits(encoding, layer), atol=1e-10, rtol=0)


def test_initial_phases() -> None:
    assert torch.equal(pope().get_parameter("phases"), torch.zeros(2, 4, 8, dtype=torch.float64))
    drawn = built({"name": "pope", "initial_phase": "uniform"}, d_model=1024).get_parameter("phases")
    assert -2 * math.pi <= drawn.min() < -6.2
    assert -0.1 < drawn.max() <= 0
    assert drawn.mean().item() == pytest.approx(-math.pi, abs=0.1)


def test_at_zero_a_phase_still_learns() -> None:
    layer = random_layer(5)
    encoding = pope()
    logits(encoding, layer)[:, :, 4].sum().backward()
    gradient = encoding.get_parameter("phases").grad
    assert gradient is not None
    assert (gradient[0] != 0).all()
    assert (gradient[1] == 0).all()  # of the layer that was not at work


@pytest.mark.parametrize("queries", [slice(0, 300), slice(290, 300)])
def test_wide_keys_meet_narrow_values_in_the_fused_kernel(queries: slice) -> None:
    layer, v = random_layer(300, batch=1), random_layer(300, batch=1, seed=1).k
    encoding = with_parameters(pope(), phases=phases())
    with torch.no_grad():
        fused = attend(encoding, layer, v, queries)
    assert fused.shape == v[:, :, queries].shape
    torch.testing.assert_close(fused, output(encoding, layer, v, queries).detach())
