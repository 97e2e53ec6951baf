"""The sinusoidal table: the paper's formula, in the paper's order unless told."""

from __future__ import annotations

import math

import pytest
import torch
from driving import at, built, table
from hypothesis import given
from hypothesis import strategies as st

from pe_cli.errors import ConfigError


def test_row_one_of_width_eight() -> None:
    row = table(built("sinusoidal", d_model=8), [1])[0]
    expected = [wave(angle) for angle in (1, 0.1, 0.01, 0.001) for wave in (math.sin, math.cos)]
    assert row.tolist() == pytest.approx(expected, abs=1e-15)


def test_concatenated_has_the_same_columns_in_another_order() -> None:
    ids = [0, 1, 5.5, 4000]
    interleaved = table(built("sinusoidal"), ids)
    concatenated = table(built({"name": "sinusoidal", "layout": "concatenated"}), ids)
    assert torch.equal(concatenated, torch.cat((interleaved[:, 0::2], interleaved[:, 1::2]), dim=1))


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("width", [1, 3, 33])
def test_an_odd_width_ends_without_a_cosine(layout: str, width: int) -> None:
    encoding = built({"name": "sinusoidal", "layout": layout}, d_model=width, n_heads=1)
    row = table(encoding, [7])[0]
    sines = [math.sin(7 * 10000 ** (-2 * k / width)) for k in range((width + 1) // 2)]
    cosines = [math.cos(7 * 10000 ** (-2 * k / width)) for k in range(width // 2)]
    columns = (row[0::2], row[1::2]) if layout == "interleaved" else row.split((len(sines), len(cosines)))
    assert columns[0].tolist() == pytest.approx(sines, abs=1e-14)
    assert columns[1].tolist() == pytest.approx(cosines, abs=1e-14)


def test_a_float32_model_gets_far_rows_right() -> None:
    """An angle in float32 would be off by 1e-4 at id 4001."""
    encoding = built("sinusoidal", dtype=torch.float32)
    row = encoding.embed(torch.zeros(1, 1, 32), at([4001]))[0, 0]
    assert row[0].item() == pytest.approx(math.sin(4001), abs=1e-7)
    assert row.dtype == torch.float32


@given(p=st.integers(0, 4000), n=st.integers(0, 4000))
def test_the_product_of_two_rows_depends_on_distance(p: int, n: int) -> None:
    near, far = table(built("sinusoidal"), [p, p + n])
    expected = sum(math.cos(n * 10000 ** (-2 * k / 32)) for k in range(16))
    assert (near @ far).item() == pytest.approx(expected, abs=1e-9)


def test_scale_and_base() -> None:
    row = table(built({"name": "sinusoidal", "scale": 0.5, "base": 16}, d_model=4), [2])[0]
    waves = [math.sin(2), math.cos(2), math.sin(0.5), math.cos(0.5)]
    assert row.tolist() == pytest.approx([0.5 * wave for wave in waves])


def test_it_is_added_to_the_embeddings() -> None:
    x = torch.randn(3, 2, 32, dtype=torch.float64)
    encoding = built("sinusoidal")
    added = encoding.embed(x, at([3, 8])) - x
    torch.testing.assert_close(added, table(encoding, [3, 8]).expand(3, 2, 32))


def test_wavelengths_run_from_two_pi() -> None:
    numbers = built("sinusoidal", d_model=8).numbers(1)
    assert numbers["inverse_frequencies"].tolist() == pytest.approx([1, 0.1, 0.01, 0.001])
    assert numbers["wavelengths"].tolist() == pytest.approx([2 * math.pi * power for power in (1, 10, 100, 1000)])


@pytest.mark.parametrize("option", [{"base": 0.5}, {"scale": 0}, {"layout": "halves"}, {"bases": 3}])
def test_options_that_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"encoding\." + next(iter(option))):
        built({"name": "sinusoidal", **option})
