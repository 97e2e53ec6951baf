import numpy as np
import pytest
import torch
from longer import at_length, random_table, rows_at

from pe_cli.errors import StrategyRefused


def kernel(distance: float, a: float = -0.75) -> float:
    """Keys' cubic kernel."""
    n = abs(distance)
    if n <= 1:
        return (a + 2) * n**3 - (a + 3) * n**2 + 1
    return a * n**3 - 5 * a * n**2 + 8 * a * n - 4 * a if n < 2 else 0.0


@pytest.mark.parametrize("places", ["ends", "centres"])
@pytest.mark.parametrize("length", [9, 13, 32])
def test_rows_by_the_kernel(places: str, length: int) -> None:
    table = random_table()
    expected = np.zeros((length, 6))
    for p in range(length):
        u = p * 7 / (length - 1) if places == "ends" else (p + 0.5) * 8 / length - 0.5
        for r in range(int(np.floor(u)) - 1, int(np.floor(u)) + 3):
            expected[p] += kernel(u - r) * table[min(max(r, 0), 7)].numpy()
    found = rows_at({"name": "cubic", "places": places}, table, length)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_trained_rows_stay_and_between_them_a_line_is_bent() -> None:
    """By hand, a quarter of the way from row 1 to row 2: 0.87890625 · 1 + 0.26171875 · 2 − 0.03515625 · 3."""
    table = torch.arange(8.0, dtype=torch.float64)[:, None].expand(8, 2).contiguous()
    found = rows_at("cubic", table, 29)[:, 0]
    torch.testing.assert_close(found[::4], table[:, 0])
    assert (float(found[5]), float(found[6])) == (pytest.approx(1.296875), pytest.approx(1.5))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tupe", "it extends a table of rows that are added to the embeddings"),
        ("rope", "it extends a table"),
        ("anchored", "ids between whole numbers mean nothing to it"),
        ("tree", "its ids are read from the text"),
    ],
)
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"cubic has no meaning for {name}: {why}"):
        at_length("cubic", name, 16)
