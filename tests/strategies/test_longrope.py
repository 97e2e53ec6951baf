import math

import pytest
from longer import at_length, frequencies_at

from pe_cli.errors import StrategyRefused

HEAD = {"d_model": 8, "n_heads": 1}
FACTORS = {"name": "longrope", "factors": [1, 2, 3, 4]}


def test_each_pair_has_its_factor_and_attention_is_sharpened() -> None:
    assert frequencies_at(FACTORS, 32, **HEAD) == pytest.approx([1, 0.1 / 2, 0.01 / 3, 0.001 / 4])
    factor = at_length(FACTORS, "rope", 32, **HEAD).numbers(32)["attention_factor"]
    assert float(factor) == pytest.approx(math.sqrt(1 + math.log(4) / math.log(8)))


def test_refused() -> None:
    with pytest.raises(StrategyRefused, match=r"searched for each model, .* longrope\(factors=\[…\]\) with 4 of them"):
        at_length("longrope", "rope", 16, **HEAD)
    with pytest.raises(StrategyRefused, match="it turns 4 pairs of columns, and 2 factors are given"):
        at_length("longrope(factors=[1, 2])", "rope", 16, **HEAD)
    with pytest.raises(StrategyRefused, match="longrope has no meaning for learned: it changes the frequencies"):
        at_length(FACTORS, "learned", 16)
