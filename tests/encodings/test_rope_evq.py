"""The EVQ-cosh schedule: more of the frequencies near 1 than in rope, by one number τ."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from driving import at, built, logits, random_layer

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError


def evq(**options: object) -> PositionEncoding:
    return built({"name": "rope_evq", **options})


def exponents(**options: object) -> list[float]:
    frequencies = evq(base=math.e, **options).numbers(1)["inverse_frequencies"]
    return (-frequencies.log()).tolist()


def test_exponents_worked_by_hand() -> None:
    """sinh 2 = 3.626860; 3/4, 1/2 and 1/4 of it are the sinh of 1.726026, 1.356944 and 0.813850."""
    expected = [0, 1 - 1.726026 / 2, 1 - 1.356944 / 2, 1 - 0.813850 / 2]
    assert exponents(grid="left", tau=2) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("tau", [0.01, 0.5, 2.83, 4, 11, 30])
@pytest.mark.parametrize("grid", ["midpoint", "left"])
def test_the_exponent_is_where_a_sinh_has_fallen_by_a_share(tau: float, grid: str) -> None:
    """sinh(τ (1 − φ)) = (1 − u) sinh τ: the definition without its inverse."""
    for pair, phi in enumerate(exponents(grid=grid, tau=tau)):
        u = (pair + (0.5 if grid == "midpoint" else 0)) / 4
        assert math.sinh(tau * (1 - phi)) == pytest.approx((1 - u) * math.sinh(tau), rel=1e-9)


def test_without_tau_it_is_rope_or_rope_shifted_by_half_a_step() -> None:
    layer = random_layer(5).at(at([0, 3, 4.5, 77, 4000]))
    rope = built({"name": "rope", "base": 1e4})
    torch.testing.assert_close(logits(evq(base=1e4, tau=0, grid="left"), layer), logits(rope, layer))
    shifted = evq(base=1e4, tau=0).numbers(1)["inverse_frequencies"]
    assert shifted.tolist() == pytest.approx([10 ** -(pair + 0.5) for pair in range(4)], rel=1e-12)


@pytest.mark.parametrize("grid", ["midpoint", "left"])
def test_small_tau_goes_over_into_none(grid: str) -> None:
    assert exponents(tau=1e-4, grid=grid) == pytest.approx(exponents(tau=0, grid=grid), abs=1e-8)


def test_frequencies_are_packed_at_the_high_end() -> None:
    phi = exponents(tau=4)
    steps = [after - before for before, after in itertools.pairwise(phi)]
    assert steps == sorted(steps)
    assert steps[-1] > 3 * steps[0]
    assert all(ours < u for ours, u in zip(phi, exponents(tau=0), strict=True))


def test_tau_by_the_published_rule() -> None:
    encoding = built("rope_evq", d_model=64, n_heads=1, train_length=256)
    assert encoding.numbers(1)["tau"].item() == 4
    stated = built({"name": "rope_evq", "tau": 4}, d_model=64, n_heads=1)
    assert torch.equal(encoding.numbers(1)["inverse_frequencies"], stated.numbers(1)["inverse_frequencies"])
    assert evq().options.base == 500_000


def test_logits_survive_a_shift() -> None:
    layer = random_layer(8)
    moved = layer.at(at(layer.positions.ids[0] + 1234))
    torch.testing.assert_close(logits(evq(), moved), logits(evq(), layer), atol=1e-10, rtol=0)


def test_a_rule_without_a_number_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"encoding\.tau: heads of 1024 columns .* give 724.* 700 or less"):
        built("rope_evq", d_model=1024, n_heads=1, train_length=2)
    assert built({"name": "rope_evq", "tau": 700}, d_model=1024, n_heads=1).numbers(1)["wavelengths"].isfinite().all()
    for tau in (-1, 701):
        with pytest.raises(ConfigError, match=r"tau"):
            evq(tau=tau)
    with pytest.raises(ConfigError, match=r"encoding: model.d_model 15 .* 10 or 20 would do"):
        built("rope_evq", d_model=15, n_heads=5)
