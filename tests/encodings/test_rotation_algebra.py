"""Why turning queries and keys by their own ids leaves distances only: the algebra, with matrices and complex numbers.

RoPE is built here a second time, in NumPy and float64, and compared with the encoding in both layouts.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from driving import at, built, logits, random_layer
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

LAYOUTS = ("halves", "interleaved")
THETA = 10000.0 ** (-np.arange(4) / 4)  # a head of 8 columns
ids = st.integers(-5000, 5000) | st.floats(-5000, 5000)

Array = NDArray[np.float64]


def pairs(layout: str) -> tuple[list[int], list[int]]:
    """First and second columns of the four pairs."""
    return ([0, 1, 2, 3], [4, 5, 6, 7]) if layout == "halves" else ([0, 2, 4, 6], [1, 3, 5, 7])


def rotation(p: float, layout: str = "halves") -> Array:
    """R_p as a matrix (8, 8)."""
    matrix = np.zeros((8, 8))
    for first, second, theta in zip(*pairs(layout), THETA, strict=True):
        matrix[first, first] = matrix[second, second] = math.cos(p * theta)
        matrix[second, first] = math.sin(p * theta)
        matrix[first, second] = -math.sin(p * theta)
    return matrix


def as_complex(x: Array, layout: str) -> NDArray[np.complex128]:
    """(…, 8) real columns as (…, 4) complex numbers."""
    first, second = pairs(layout)
    return x[..., first] + 1j * x[..., second]


@pytest.mark.parametrize("layout", LAYOUTS)
@given(m=ids, n=ids)
def test_rotations_are_a_group(layout: str, m: float, n: float) -> None:
    """R_m R_n = R_{m+n}, R_0 = 1 and R_m^T = R_{−m}; so R_m^T R_n = R_{n−m}: what is left is the distance."""
    r_m, r_n = rotation(m, layout), rotation(n, layout)
    np.testing.assert_allclose(r_m @ r_n, rotation(m + n, layout), atol=4e-12)
    np.testing.assert_allclose(r_m.T, rotation(-m, layout), atol=0)
    np.testing.assert_allclose(r_m.T @ r_n, rotation(n - m, layout), atol=4e-12)
    assert np.array_equal(rotation(0, layout), np.eye(8))


@given(m=ids, n=ids, seed=st.integers(0, 2**31))
def test_a_product_of_turned_vectors_in_complex_numbers(m: float, n: float, seed: int) -> None:
    """⟨R_m q, R_n k⟩ = Re Σ q conj(k) e^{i(m−n)θ}."""
    q, k = np.random.default_rng(seed).normal(size=(2, 8))
    for layout in LAYOUTS:
        product = (rotation(m, layout) @ q) @ (rotation(n, layout) @ k)
        terms = as_complex(q, layout) * as_complex(k, layout).conj() * np.exp(1j * (m - n) * THETA)
        assert product == pytest.approx(terms.sum().real, abs=1e-10)


def test_rotations_of_three_axes_are_no_such_group() -> None:
    """All turns act in planes of their own. Turns about two axes of space do not commute, and distances are lost."""

    def about(axis: int, angle: float) -> Array:
        plane = [other for other in range(3) if other != axis]
        matrix = np.eye(3)
        matrix[np.ix_(plane, plane)] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        return matrix

    def both(p: float) -> Array:
        return about(0, 0.3 * p) @ about(2, 0.5 * p)

    near, far = both(1).T @ both(3), both(101).T @ both(103)
    assert np.abs(near - far).max() > 0.1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_is_that_rotation(layout: str) -> None:
    layer = random_layer(7).at(at([0, 1, 2.5, 40, 41, 999, 4000]))
    positions = layer.positions.ids[0].tolist()
    turned = built({"name": "rope", "layout": layout}).rotate(layer)
    for before, after in zip((layer.q, layer.k), turned, strict=True):
        expected = np.stack([before[:, :, n].numpy() @ rotation(p, layout).T for n, p in enumerate(positions)], axis=2)
        np.testing.assert_allclose(after.numpy(), expected, atol=1e-11)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shift", [0, 123, 4000.25])
def test_logits_of_rope_are_the_complex_sums(layout: str, shift: float) -> None:
    layer = random_layer(9)
    ours = logits(built({"name": "rope", "layout": layout}), layer.at(at(layer.positions.ids[0] + shift)))
    q, k = (as_complex(x.numpy(), layout) for x in (layer.q, layer.k))
    for i in range(9):
        for j in range(i + 1):
            terms = q[:, :, i] * k[:, :, j].conj() * np.exp(1j * (i - j) * THETA)
            np.testing.assert_allclose(ours[:, :, i, j].numpy(), terms.sum(-1).real / math.sqrt(8), atol=1e-11)


def test_the_layouts_differ_in_the_columns_that_meet() -> None:
    """One query and key for both: the logits agree at distance zero only."""
    layer = random_layer(2, n_heads=1, d_model=8)
    halves, interleaved = (
        logits(built({"name": "rope", "layout": layout}, n_heads=1, d_model=8), layer)[:, 0] for layout in LAYOUTS
    )
    torch.testing.assert_close(halves.diagonal(dim1=1, dim2=2), interleaved.diagonal(dim1=1, dim2=2))
    assert (halves - interleaved)[:, 1, 0].abs().min() > 1e-3
