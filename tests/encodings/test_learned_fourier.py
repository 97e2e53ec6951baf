"""Learnable Fourier features: Algorithm 1 of the paper for ids with one axis."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from driving import at, built, table, with_parameters
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pe_cli.errors import ConfigError

SMALL = {"name": "learned_fourier", "features": 6, "hidden": 5}


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def by_hand(p: float, parameters: dict[str, np.ndarray]) -> np.ndarray:
    """One id and one output column at a time, with GELU written as x Φ(x)."""
    frequencies, first, second = (parameters[name] for name in ("frequencies", "first", "second"))
    waves = [math.cos(p * w) for w in frequencies] + [math.sin(p * w) for w in frequencies]
    features = np.array(waves) / math.sqrt(len(waves))
    hidden = [features @ column + bias for column, bias in zip(first.T, parameters["first_bias"], strict=True)]
    active = [h * 0.5 * (1 + math.erf(h / math.sqrt(2))) for h in hidden]
    return np.array([active @ column for column in second.T]) + parameters["second_bias"]


@given(p=st.floats(-10, 5000, width=32))
def test_against_the_algorithm_for_one_id(p: float) -> None:
    encoding = built(SMALL)
    with_parameters(encoding, first_bias=double(0.1, -0.2, 0.3, 0, 0.5), second_bias=torch.linspace(-1, 1, 32))
    parameters = {name: value.detach().numpy() for name, value in encoding.named_parameters()}
    np.testing.assert_allclose(table(encoding, [p])[0].detach().numpy(), by_hand(p, parameters), atol=1e-12)


def test_a_row_worked_by_hand() -> None:
    """One frequency of π/2 at id 1: cosine 0, sine 1, and a feature of 1/√2 meets a weight of √2."""
    encoding = built({"name": "learned_fourier", "features": 2, "hidden": 1}, d_model=1, n_heads=1)
    with_parameters(encoding, frequencies=double(math.pi / 2), first=double(7, math.sqrt(2))[:, None])
    with_parameters(encoding, second=double(10), second_bias=double(3))
    gelu_of_one = 0.8413447460685429
    assert table(encoding, [1])[0, 0].item() == pytest.approx(3 + 10 * gelu_of_one, abs=1e-12)


@pytest.mark.parametrize("gamma", [2.0, 10.0, 40.0])
def test_before_training_ids_are_alike_up_to_gamma(gamma: float) -> None:
    """The mean of cos(w n) over normal frequencies of standard deviation 1/γ is a Gaussian of width γ."""
    encoding = built({"name": "learned_fourier", "features": 2 * 40_000, "hidden": 1, "gamma": gamma})
    frequencies = encoding.get_parameter("frequencies")
    for distance in (0, gamma / 2, gamma, 3 * gamma):
        alike = (frequencies * distance).cos().mean().item()
        assert alike == pytest.approx(math.exp(-(distance**2) / (2 * gamma**2)), abs=0.02)


def test_it_starts_at_about_half_the_size_of_the_embeddings() -> None:
    rows = table(built("learned_fourier", d_model=512), torch.arange(512))
    assert 0.25 < rows.std().item() < 0.75
    assert rows.std(dim=0).mean().item() > 0.2, "not one vector for all ids"


def test_far_ids_are_right_in_float32() -> None:
    encoding = built("learned_fourier", dtype=torch.float32)
    wide = built("learned_fourier")
    wide.load_state_dict(encoding.state_dict())
    ours = encoding.embed(torch.zeros(1, 2, 32), at([4001, 65000]))[0]
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), table(wide, [4001, 65000]), atol=1e-5, rtol=0)


def test_parameters_do_not_depend_on_the_length() -> None:
    shapes = {name: tuple(value.shape) for name, value in built(SMALL, train_length=999).named_parameters()}
    assert shapes == {"frequencies": (3,), "first": (6, 5), "first_bias": (5,), "second": (5, 32), "second_bias": (32,)}


def test_wavelengths_of_the_frequencies() -> None:
    encoding = with_parameters(built(SMALL), frequencies=double(0.5, -0.25, 2))
    wavelengths = encoding.numbers(1)["wavelengths"].tolist()
    assert wavelengths == pytest.approx([4 * math.pi, 8 * math.pi, math.pi])


@pytest.mark.parametrize("option", [{"features": 5}, {"features": 0}, {"hidden": 0}, {"gamma": 0}, {"width": 3}])
def test_options_that_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"encoding\." + next(iter(option))):
        built({"name": "learned_fourier", **option})
