import numpy as np
import pytest
import torch
from longer import random_table, rows_at


@pytest.mark.parametrize("rows", [7, 8])
def test_all_harmonics_without_a_ridge_are_the_rows_over_and_over(rows: int) -> None:
    table = random_table(rows)
    found = rows_at({"name": "fourier", "harmonics": rows // 2, "ridge": 0}, table, 3 * rows)
    torch.testing.assert_close(found, table.repeat(3, 1))


def test_coefficients_are_projections_shrunk_by_the_ridge() -> None:
    """On the trained ids the waves are orthogonal, of square L (the constant) or L / 2."""
    table, ridge = random_table(), 0.1
    found = rows_at({"name": "fourier", "harmonics": 2, "ridge": ridge}, table, 20)
    ids = np.arange(8)
    expected = table.numpy().mean(axis=0) / (1 + ridge) * np.ones((12, 1))
    for k in (1, 2):
        for wave in (np.cos, np.sin):
            size = wave(2 * np.pi * k * ids / 8) @ table.numpy() / (4 + 8 * ridge)
            expected += np.outer(wave(2 * np.pi * k * np.arange(8, 20) / 8), size)
    assert torch.equal(found[:8], table)
    np.testing.assert_allclose(found[8:].numpy(), expected, atol=1e-12)


def test_what_is_added_stays_within_the_trained_size() -> None:
    table = random_table(32)
    assert rows_at("fourier", table, 512)[32:].abs().max() < 1.5 * table.abs().max()


def test_waves_of_other_lengths_would_explode() -> None:
    """What the docstring says: fitted to 32 rows, waves up to the same frequency, but not whole turns of them."""
    table, ids = random_table(32).numpy(), np.arange(128)
    angle = np.outer(ids, 2 * np.pi * np.arange(0, 9, 0.5) / (1.3 * 32))
    basis = np.concatenate([np.cos(angle), np.sin(angle[:, 1:])], axis=1)
    found, *_ = np.linalg.lstsq(basis[:32], table, rcond=None)
    assert np.abs(basis[32:64] @ found).max() > 100 * np.abs(table).max()
