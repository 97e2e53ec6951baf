import torch
from longer import random_table, rows_at


def test_the_mean_of_the_trained_rows_beyond_the_trained_length() -> None:
    table = random_table()
    found = rows_at("mean", table, 13)
    assert torch.equal(found[:8], table)
    torch.testing.assert_close(found[8:], table.mean(dim=0).expand(5, 6))
