import torch
from longer import random_table, rows_at


def test_rows_have_the_mean_and_variance_of_each_column() -> None:
    table = random_table() * torch.tensor([1, 2, 3, 4, 5, 0.0]) + torch.arange(6.0)
    found = rows_at("random", table, 8 + 4000)
    assert torch.equal(found[:8], table)
    drawn = found[8:]
    variance = table.var(dim=0, correction=0)
    torch.testing.assert_close(drawn.mean(dim=0), table.mean(dim=0), atol=0.3, rtol=0)
    torch.testing.assert_close(drawn.var(dim=0), variance, rtol=0.1, atol=0)
    assert not (drawn[1:] == drawn[:-1])[:, :5].any()


def test_a_row_does_not_depend_on_how_many_there_are() -> None:
    """Draws of 16 and more numbers at once are made of blocks, and the last block differs."""
    for width in (6, 32):
        table = random_table(width=width)
        longest = rows_at("random", table, 60)
        for length in (9, 10, 17, 33):
            assert torch.equal(rows_at("random", table, length), longest[:length])


def test_another_seed_draws_other_rows() -> None:
    table = random_table()
    assert not torch.equal(rows_at("random(seed=1)", table, 12), rows_at("random", table, 12))
