import torch
from longer import random_table, rows_at


def test_nothing_is_added_beyond_the_trained_length() -> None:
    table = random_table()
    found = rows_at("zero", table, 13)
    assert torch.equal(found[:8], table)
    assert not found[8:].any()
